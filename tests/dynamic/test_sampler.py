import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from dynamic.cases import losses_of, small, train_epoch
from lcmat import Signals, extract, seeding, select
from lcmat.dynamic import Indexed, Sampler, sampler_of
from samples import digits_like, normalised_net, same_state, vectors


@pytest.mark.parametrize("method", ["lcmat-s", "craig", "gradmatch", "glister", "herding", "entropy", "uniform"])
def test_the_picks_are_those_of_a_direct_selection(method: str) -> None:
    data, model = small()
    sampler = Sampler(model, data, method, 0.2, every=2)
    visited = train_epoch(model, data, sampler)
    train_epoch(model, data, sampler)
    fresh = extract(model, data)
    train_epoch(model, data, sampler)
    assert sampler.subset is not None
    direct = select(fresh, method, fraction=0.2, seed=sampler.subset.seed)
    assert sampler.picks.tolist() == direct.indices.tolist()
    assert len(visited) == len(set(visited)) == 12


def test_it_chooses_anew_every_r_epochs_and_visits_everything_while_warming_up() -> None:
    data, model = small()
    sampler = Sampler(model, data, "craig", 0.1, every=3, warmup=2)
    visits = [sorted(train_epoch(model, data, sampler)) for _ in range(8)]
    assert visits[0] == visits[1] == list(range(60))
    assert visits[2] == visits[3] == visits[4] != visits[5]
    assert visits[5] == visits[6] == visits[7]
    assert sampler.cost.turns == 2


def test_each_epoch_has_an_order_of_its_own_and_a_seed_repeats_it() -> None:
    data, model = small()
    first, second = (Sampler(model, data, "k-center", 0.3, every=5, seed=7) for _ in range(2))
    one, two = list(first), list(first)
    assert one != two
    assert sorted(one) == sorted(two)
    assert [one, two] == [list(second), list(second)]


def test_a_pool_is_drawn_anew_and_keeps_the_classes_shares() -> None:
    data, model = small()
    seen: list[Tensor] = []

    def look(model: nn.Module, rows: Tensor) -> Signals:
        seen.append(rows)
        return extract(model, data.take(rows))

    sampler = Sampler(model, data, "herding", 0.1, pool=0.5, signals=look)
    for _ in range(2):
        assert set(sampler) <= set(seen[-1].tolist())
    assert [len(rows) for rows in seen] == [30, 30]
    assert seen[0].tolist() != seen[1].tolist()
    assert torch.bincount(data.labels[seen[0]]).tolist() == [10, 10, 10]


def test_weights_have_mean_one_and_are_given_on_request_only() -> None:
    data, model = small()
    plain, weighted = (Sampler(model, data, "craig", 0.2, weighted=flag) for flag in (False, True))
    list(plain)
    rows = torch.tensor(list(weighted))
    assert weighted.subset is not None
    expected = dict(zip(weighted.subset.indices.tolist(), (weighted.subset.weights * 12 / 60).tolist(), strict=True))
    assert torch.equal(plain.weights(rows), torch.ones(12))
    assert weighted.weights(rows).tolist() == pytest.approx([expected[row] for row in rows.tolist()])
    assert float(weighted.weights(rows).mean()) == pytest.approx(1)
    assert len(weighted.weights(rows).unique()) > 1


def test_the_model_stays_as_it_is() -> None:
    data, model = digits_like(40), normalised_net()
    model.train()
    before = copy.deepcopy(model)
    state = torch.random.get_rng_state()
    list(Sampler(model, data, "lcmat-s", 0.2))
    assert same_state(model, before)
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_plain_data_set_and_loader_give_what_the_same_data_gives() -> None:
    data, model = small()
    inputs = (data.features - torch.tensor(data.mean)) / torch.tensor(data.std)
    dataset = TensorDataset(inputs, data.labels)
    ours = Sampler(model, data, "craig", 0.2, balance="none")
    plain = Sampler(model, dataset, "craig", 0.2, balance="none")
    loader = DataLoader(Indexed(dataset), batch_size=5, sampler=plain)
    batches = list(loader)
    assert [len(rows) for _, _, rows in batches] == [5, 5, 2]
    assert torch.equal(torch.cat([rows for _, _, rows in batches]), torch.tensor(list(ours)))
    for samples, labels, rows in batches:
        assert torch.equal(samples, inputs[rows])
        assert torch.equal(labels, data.labels[rows])
    assert len(loader) == 3
    assert sampler_of(loader) is plain


def test_an_augmenting_data_set_is_refused() -> None:
    class Augmenting(TensorDataset):
        def __getitem__(self, index: int) -> tuple[Tensor, ...]:
            draw = seeding.generator(self.reads, "augmenting")
            self.reads += 1
            sample, label = self.tensors[0][index], self.tensors[1][index]
            return sample + torch.rand(sample.shape, generator=draw), label

        reads = 0

    data, model = small()
    with pytest.raises(ValueError, match=r"another one when it was read again; give data= without augmentation"):
        list(Sampler(model, Augmenting(data.features, data.labels), "craig", 0.2))


def test_samples_of_another_form_need_a_function_of_ones_own() -> None:
    data, model = small()
    texts = [{"text": str(row), "label": int(label)} for row, label in enumerate(data.labels)]
    with pytest.raises(TypeError, match="give signals="):
        list(Sampler(model, texts, "craig", 0.2))
    sampler = Sampler(model, texts, "craig", 0.2, signals=lambda model, rows: extract(model, data.take(rows)))
    assert sorted(sampler) == sorted(Sampler(model, data, "craig", 0.2))
    assert Indexed(texts)[3] == {"text": "3", "label": 0, "index": 3}
    assert Indexed(["a", "b"])[1] == ("b", 1)


def test_methods_that_look_at_the_training_get_its_record() -> None:
    data, model = small()
    sampler = Sampler(model, data, "forgetting", 0.2, warmup=3)
    losses = []
    for _ in range(3):
        rows = torch.tensor(train_epoch(model, data, sampler))
        epoch = torch.zeros(60)
        epoch[rows] = losses_of(model, data, rows).detach()
        losses.append(epoch)
    list(sampler)
    state = sampler.state_dict()["schedule"]
    assert state["probability"].shape == (3, 60)
    # The losses were recorded while the model learned: between those of two epochs' ends.
    assert float((state["probability"][2] - torch.exp(-losses[2])).abs().max()) < 0.2
    assert len(sampler.picks) == 12


def test_a_method_that_needs_losses_says_so_when_none_come() -> None:
    data, model = small()
    with pytest.raises(ValueError, match="give warmup= of at least one epoch"):
        Sampler(model, data, "forgetting", 0.2)
    for sampler in (Sampler(model, data, "forgetting", 0.2, warmup=1), Sampler(model, data, "infobatch", epochs=3)):
        list(sampler)
        with pytest.raises(ValueError, match=r"call sampler\.record\(indices, losses\)"):
            list(sampler)


def test_labels_alone_are_enough_for_methods_that_look_at_nothing() -> None:
    data, _ = small()
    no_head = nn.Conv1d(1, 1, 1)
    assert len(list(Sampler(no_head, data, "uniform", 0.2))) == 12


@pytest.mark.parametrize("method", ["craig", "random", "infobatch", "forgetting"])
@pytest.mark.parametrize("stop", [2, 3, 4])
def test_a_killed_training_goes_on_with_the_same_picks(method: str, stop: int) -> None:
    def begin() -> tuple[Any, nn.Module, Sampler]:
        data, model = small()
        budget: dict[str, Any] = {"epochs": 8} if method == "infobatch" else {"fraction": 0.2, "every": 2}
        return data, model, Sampler(model, data, method, warmup=1, seed=3, **budget)

    data, model, sampler = begin()
    whole = [train_epoch(model, data, sampler) for _ in range(6)]
    data, model, sampler = begin()
    for _ in range(stop):
        train_epoch(model, data, sampler)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "sampler": sampler.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    data, model, sampler = begin()
    model.load_state_dict(saved["model"])
    sampler.load_state_dict(saved["sampler"])
    assert [train_epoch(model, data, sampler) for _ in range(6 - stop)] == whole[stop:]


def test_the_state_of_another_sampler_is_refused() -> None:
    data, model = small()
    state = Sampler(model, data, "craig", 0.2, every=2).state_dict()
    with pytest.raises(ValueError, match=r"differs in every \(2 there, 3 here\)"):
        Sampler(model, data, "craig", 0.2, every=3).load_state_dict(state)
    with pytest.raises(ValueError, match="no state of a sampler"):
        Sampler(model, data, "craig", 0.2).load_state_dict({"epoch": 1})


def test_set_epoch_leads_to_the_same_epoch() -> None:
    data, model = small()
    sampler = Sampler(model, data, "random", 0.2)
    epochs = [list(sampler) for _ in range(4)]
    sampler.set_epoch(2)
    assert list(sampler) == epochs[2]
    with pytest.raises(ValueError, match="at least 0"):
        sampler.set_epoch(-1)


@pytest.mark.parametrize(
    ("changes", "kind", "match"),
    [
        ({"fraction": 0}, ValueError, "fraction above 0"),
        ({"fraction": 1.5}, ValueError, "at most 1"),
        ({"fraction": None}, ValueError, "got none"),
        ({"fraction": True}, TypeError, "as a number"),
        ({"every": 0}, ValueError, "every of at least 1"),
        ({"every": 1.5}, TypeError, "whole number"),
        ({"warmup": -1}, ValueError, "warmup of at least 0"),
        ({"epochs": 0}, ValueError, "epochs of at least 1"),
        ({"pool": 5}, ValueError, r"a pool of 12 \(what is chosen\) to 60"),
        ({"pool": 0.1}, ValueError, r"a pool of 20 % \(what is chosen\) to 100 % of the data, got 10 %"),
        ({"pool": 61}, ValueError, "to 60 samples, got 61"),
        ({"pool": 1.2}, ValueError, "as a share above 0"),
        ({"pool": "all"}, TypeError, "expected pool"),
        ({"balance": "some"}, ValueError, "expected a balance"),
        ({"method": "herding", "weighted": True}, ValueError, "defines no weights"),
        ({"method": "crag"}, ValueError, r"did you mean 'craig'.*random, infobatch, full"),
        ({"rho": 1}, TypeError, "unknown option"),
        ({"method": "infobatch"}, ValueError, "decides by itself"),
        ({"method": "infobatch", "fraction": None}, ValueError, "give epochs="),
        ({"method": "infobatch", "fraction": None, "epochs": 9, "prune": 1.0}, ValueError, r"in \[0, 1\)"),
        ({"method": "infobatch", "fraction": None, "epochs": 9, "anneal": 1.1}, ValueError, "anneal"),
        ({"method": "full", "fraction": None, "every": 2}, ValueError, "no turns"),
        ({"method": "random", "pool": 20}, ValueError, "no pool"),
        ({"rank": 2, "world": 2}, ValueError, "rank from 0"),
    ],
)
def test_what_is_out_of_range_is_refused_at_once(changes: dict[str, Any], kind: type[Exception], match: str) -> None:
    data, model = small()
    with pytest.raises(kind, match=match):
        Sampler(model, data, **{"method": "craig", "fraction": 0.2, **changes})


def test_a_model_without_a_head_and_data_of_no_kind_are_refused() -> None:
    data, model = small()
    with pytest.raises(ValueError, match=r"has no nn\.Linear"):
        Sampler(nn.Conv1d(1, 1, 1), data, "craig", 0.2)
    with pytest.raises(ValueError, match="got 'fc'"):
        Sampler(model, data, "craig", 0.2, head="fc")
    with pytest.raises(TypeError, match="samples by number"):
        Sampler(model, iter([]), "craig", 0.2)
    with pytest.raises(ValueError, match="empty"):
        Sampler(model, [], "craig", 0.2)


def test_a_loader_that_does_not_go_by_the_sampler_is_noticed() -> None:
    data, model = small()
    dataset = TensorDataset(data.features, data.labels)
    sampler = Sampler(model, data, "craig", 0.2)
    with pytest.raises(TypeError, match="got one with SequentialSampler"):
        sampler_of(DataLoader(dataset))
    with pytest.raises(ValueError, match="loads 30 samples, its sampler chooses from 60"):
        sampler_of(DataLoader(TensorDataset(data.features[:30]), sampler=sampler))
    list(sampler)
    outside = torch.tensor([row for row in range(60) if row not in set(sampler.picks.tolist())][:3])
    with pytest.raises(ValueError, match="does the DataLoader have sampler="):
        sampler.record(outside, torch.ones(3))
    with pytest.raises(ValueError, match="reduction='none'"):
        sampler.record(sampler.picks, torch.tensor(1.0))


def test_losses_that_are_not_finite_are_refused() -> None:
    data, model = small()
    sampler = Sampler(model, data, "infobatch", epochs=4)
    rows = torch.tensor(list(sampler))
    losses = torch.ones(60)
    losses[5] = float("nan")
    sampler.record(rows, losses[rows])
    with pytest.raises(ValueError, match="for sample 5; did it diverge"):
        list(sampler)


def test_validation_data_reach_the_method() -> None:
    data, model = small()
    other = vectors(30)
    sampler = Sampler(model, data, "glister", 0.2, validation=other)
    list(sampler)
    assert sampler.subset is not None
    signals = extract(model, data)
    both = Signals(signals.features, signals.logits, signals.labels, validation=extract(model, other))
    assert sampler.picks.tolist() == select(both, "glister", fraction=0.2, seed=sampler.subset.seed).indices.tolist()
