"""Rules about the code as a whole, read from its syntax trees."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lcmat

SOURCE = Path(lcmat.__file__).parent

# Low to high. A module may import from its own layer and from those below.
LAYERS = [
    {"version"},
    {"types", "files", "seeding", "runtime", "registry", "kernels"},
    {"linear_head", "augment", "pieces"},
    {"data", "networks"},
    {"training", "signals"},
    {"report"},
    {"selection", "condensation"},
    {"evaluation", "landscape", "dynamic", "continual"},
    {"study"},
    {"cli"},
    {"__main__"},
]
FORBIDDEN = {"selection": {"data", "networks", "condensation"}}

MODULES = {
    path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(SOURCE.rglob("*.py"))
    if path != SOURCE / "__init__.py"  # the public names; it imports lazily, from everywhere
}


def room_of(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def level_of(room: str) -> int:
    return next(level for level, rooms in enumerate(LAYERS) if room in rooms)


def imported_rooms(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and room of every import from lcmat, deferred ones and those for type checking included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "lcmat":
            names = [f"lcmat.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide the layer"
            names = [node.module or ""]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            if first == "lcmat" and rest and not rest.startswith("__"):
                yield node.lineno, rest.split(".")[0]


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Place, dotted name and node of every call."""
    for path, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield f"{path}:{node.lineno}", dotted(node.func), node


def has_keyword(call: ast.Call, name: str, value: object) -> bool:
    return any(
        keyword.arg == name and isinstance(keyword.value, ast.Constant) and keyword.value.value is value
        for keyword in call.keywords
    )


def test_every_room_has_its_layer() -> None:
    rooms = {room_of(path) for path in MODULES}
    assert rooms <= set().union(*LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_layers_import_downwards_only(path: Path) -> None:
    room = room_of(path)
    wrong = [
        f"{path}:{line} imports {other}"
        for line, other in imported_rooms(MODULES[path])
        if level_of(other) > level_of(room) or other in FORBIDDEN.get(room, ())
    ]
    assert not wrong


def test_an_upward_import_would_be_seen() -> None:
    tree = ast.parse("def f():\n    from lcmat import select\n    import lcmat.cli.progress\n    import lcmat")
    assert [room for _, room in imported_rooms(tree)] == ["select", "cli"]


def test_no_package_carries_the_name_of_a_public_function() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert not rooms & {name for name in lcmat.__all__ if not name.startswith("__")}


def test_nothing_is_unpickled_unseen() -> None:
    wrong = [
        f"{place} {name}"
        for place, name, call in calls()
        if name in {"pickle.load", "pickle.loads", "pickle.Unpickler", "joblib.load", "pandas.read_pickle"}
        or (name == "torch.load" and not has_keyword(call, "weights_only", value=True))
        or (name in {"np.load", "numpy.load"} and not has_keyword(call, "allow_pickle", value=False))
    ]
    assert not wrong


def test_seeds_never_come_from_the_clock_and_the_global_generators_are_left_alone() -> None:
    clocks = {"time.time", "time.time_ns", "datetime.now", "datetime.datetime.now", "os.urandom"}
    globals_ = {"torch.manual_seed", "torch.cuda.manual_seed_all", "torch.seed", "np.random.seed", "random.seed"}
    drawing = ("np.random.", "numpy.random.", "random.")
    wrong = [
        f"{place} {name}"
        for place, name, _ in calls()
        if name in clocks | globals_ or (name.startswith(drawing) and not name.endswith("default_rng"))
    ]
    assert not wrong


def test_only_the_command_line_exits_and_prints() -> None:
    wrong = [
        f"{place} {name}"
        for place, name, _ in calls()
        if name in {"exit", "sys.exit", "quit", "print"} and not place.startswith(("cli", "__main__"))
    ]
    assert not wrong


def test_no_error_is_swallowed_unnamed() -> None:
    # An `except:` around a sum once dropped the first batch from it.
    wrong = [
        f"{path}:{node.lineno}"
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]
    assert not wrong


def defaults(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Name and default of every parameter that has one."""
    plain = [*function.args.posonlyargs, *function.args.args]
    yield from zip((argument.arg for argument in reversed(plain)), reversed(function.args.defaults), strict=False)
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


def shadowed(tree: ast.Module) -> list[str]:
    """Parameters whose default is what their own name means outside: `def f(extend=extend)` is always true."""
    return [
        f"{node.lineno} {name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for name, default in defaults(node)
        if isinstance(default, ast.Name) and default.id == name
    ]


def test_no_default_is_the_import_of_the_same_name() -> None:
    assert shadowed(ast.parse("from a import extend\ndef f(x, extend=extend): ...")) == ["2 extend"]
    assert shadowed(ast.parse("def f(x=1, *, extend=extend): ...")) == ["1 extend"]
    assert not [f"{path}:{place}" for path, tree in MODULES.items() for place in shadowed(tree)]
