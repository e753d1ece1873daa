from pathlib import Path

import pytest

from lcmat.selection import SELECTORS
from lcmat.study.settings import Settings, default_net
from samples import digits_like, vectors


def test_options_are_resolved_and_settings_survive_json() -> None:
    settings = Settings("digits", method="lcmat-s", options={"rho": 1}, amounts=(0.1, 0.01, 0.1), points=(2, 1))
    assert settings.options == {"rho": 1.0, "subdimensions": 100, "temperature": 1.0}
    assert settings.amounts == (0.01, 0.1)
    assert settings.points == (1, 2)
    again = Settings.from_dict(settings.as_dict())
    assert again == settings
    assert again.digest() == settings.digest() != Settings("digits").digest()


@pytest.mark.parametrize("values", [{}, {"source": "digits"}, None, {**Settings("digits").as_dict(), "more": 1}])
def test_no_settings_are_refused(values: object) -> None:
    with pytest.raises(ValueError, match="no settings of a run"):
        Settings.from_dict(values)  # type: ignore[arg-type]


def test_paths_are_kept_absolute_and_names_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("table.csv", "digits"):
        Path(name).touch()
    assert Settings("table.csv").source == str(tmp_path / "table.csv")
    assert Settings("digits").source == "digits"
    assert Settings("owner/name").source == "owner/name"


@pytest.mark.parametrize("method", [entry.name for entry in SELECTORS])
def test_every_method_accepts_its_own_defaults(method: str) -> None:
    assert Settings("digits", method=method).method == method


def test_a_wrapped_score_decides_what_the_proxy_must_record() -> None:
    assert not Settings("digits", method="ccs", net="mlp").needs_record
    assert Settings("digits", method="ccs", options={"score": "forgetting"}, net="mlp").needs_record


def test_methods_with_the_same_proxy_share_it() -> None:
    keys = {name: Settings("digits", method=name, net="mlp").proxy_key for name in ("lcmat-s", "craig", "uniform")}
    assert keys["lcmat-s"] == keys["craig"] != keys["uniform"]
    assert Settings("digits", net="mlp", epochs=3).proxy_key != keys["lcmat-s"]


def test_the_proxy_suits_the_data() -> None:
    assert default_net(vectors()) == "mlp"
    assert default_net(digits_like(size=8)) == "convnet:width=32"
    assert default_net(digits_like(size=32, channels=3)) == "resnet18"
