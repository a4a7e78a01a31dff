"""One name means one thing: no two classes or type aliases of the code are called the same."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def names(text: str) -> Iterator[tuple[str, int]]:
    """Each class and each type alias of a module, with its line."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ClassDef(name=name) | ast.TypeAlias(name=ast.Name(id=name)):
                yield name, node.lineno
            case _:
                pass


def test_a_class_name_means_one_thing() -> None:
    found = defaultdict[str, list[str]](list)
    for path in sorted(path for top in ("libs", "services") for path in (ROOT / top).glob("*/src/**/*.py")):
        for name, line in names(path.read_text()):
            found[name].append(f"{path.relative_to(ROOT)}:{line}")
    assert len(found) > 1000, "the code has moved"
    assert {name: places for name, places in found.items() if len(places) > 1} == {}, (
        "call the newer one by what it is"
    )


def test_classes_and_aliases_are_both_seen() -> None:
    assert list(names("class A:\n    class B: ...\n\ntype C = int\n")) == [("A", 1), ("C", 4), ("B", 2)]
