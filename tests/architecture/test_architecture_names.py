"""Names: each means one thing, and one thing has one name, the field's."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fairlead_testkit.source.source_statements import statements

ROOT = Path(__file__).parents[2]
OLD_WORDS = {
    "arena": "a bus harness",
    "clearance": "leave",
    "door": "an entry queue (a LocalQueue, an account), or an endpoint",
    "doors": "entry queues, or endpoints",
    "estate": "a namespace fixture",
    "front": "the heads of queues",
    "fronts": "the heads of queues",
    "ground": "the nodes of a zone",
    "hand_played": "a fake cluster",
    "kin": "the shares of a node's children",
    "kins": "interned",
    "ledger": "a cache, or counters",
    "lifter": "an effective row",
    "makeup": "a share breakdown",
    "mangled": "fuzz inputs",
    "obstacle": "an unschedulable reason",
    "obstacles": "unschedulable reasons",
    "patience": "a timeout, or staleness",
    "planted": "a cached tree",
    "prospect": "a what-if",
    "prospects": "a what-if",
    "rehearsal": "a dry run",
    "steersman": "a reconciler",
    "stretch": "the prefix of a sequence",
    "supposing": "a what-if",
    "trespass": "out of band",
    "trespasser": "a job out of band",
    "urgency": "a job's class",
    "vgpu_ask": "a vGPU request",
    "vgpu_asks": "vGPU requests",
    "wishes": "HAMi annotations, or what a class is asked by",
}
"""Words that code had for a thing of which another is the field's, and that one."""
LIKE_A_CLASS = re.compile(r"^[ \t]*(?:class|type)[ \t]+(\w+)", re.MULTILINE)
"""Lines that give a class or a type alias its name, and some of prose."""


def names(text: str) -> Iterator[tuple[str, int]]:
    """Yields each class and each type alias of a module, with its line."""
    for node in statements(text):
        match node:
            case ast.ClassDef(name=name) | ast.TypeAlias(name=ast.Name(id=name)):
                yield name, node.lineno
            case _:
                pass


def identifiers(text: str) -> Iterator[tuple[str, int]]:
    """Yields each name that code gives, with its line: classes, functions, arguments, variables, attributes."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name, node.lineno
            case _:
                pass


def words_of(name: str) -> list[str]:
    """The words of an identifier, in lower case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")


def modules() -> list[Path]:
    return sorted(path for top in ("libs", "services") for path in (ROOT / top).glob("*/src/**/*.py"))


def outside_of_packages() -> list[Path]:
    """Tests, benches and what deploys: modules that nobody installs."""
    folders = ("libs/*/tests", "services/*/tests", "tests", "bench", "deploy")
    return sorted(path for folder in folders for path in ROOT.glob(f"{folder}/**/*.py"))


@cache
def old_words_in(name: str) -> set[str]:
    """The words that nothing is called by any more."""
    spelt = "_".join(words_of(name))
    return {old for old in OLD_WORDS if re.search(rf"(?:^|_){old}(?:_|$)", spelt)}


def may_have_old_words(text: str) -> bool:
    """Whether a module has to be parsed: one in which an old word stands nowhere, joined or apart, has no name with it."""
    lower = text.lower()
    return any(spelt in lower for old in OLD_WORDS for spelt in (old, old.replace("_", "")))


def test_no_old_word_comes_back() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}: {', '.join(f'{old} is {OLD_WORDS[old]}' for old in olds)}"
        for path in modules()
        for text in [path.read_text()]
        for name, line in [(path.stem, 1), *(identifiers(text) if may_have_old_words(text) else ())]
        if (olds := sorted(old_words_in(name)))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("urgency_of", {"urgency"}),
        ("CardWishes", {"wishes"}),
        ("_ShapeObstacle", {"obstacle"}),
        ("hand_played", {"hand_played"}),
        ("pins", set()),
        ("makeup_of", {"makeup"}),
    ],
)
def test_old_words_are_found_within_names(name: str, old: set[str]) -> None:
    assert old_words_in(name) == old


def test_a_class_name_means_one_thing() -> None:
    texts = {path: path.read_text() for path in [*modules(), *outside_of_packages()]}
    seen = Counter(name for text in texts.values() for name in LIKE_A_CLASS.findall(text))
    assert len(seen) > 1500, "the code has moved"
    found = defaultdict[str, list[str]](list)
    # A name that is seen once is given once: only texts that may share one are parsed.
    for path, text in texts.items():
        if any(seen[name] > 1 for name in LIKE_A_CLASS.findall(text)):
            for name, line in names(text):
                found[name].append(f"{path.relative_to(ROOT)}:{line}")
    assert {name: places for name, places in found.items() if len(places) > 1} == {}, (
        "call the newer one by what it is"
    )


def test_classes_and_aliases_are_both_seen() -> None:
    text = "class A:\n    class B: ...\n\ntype C = int\n"
    assert list(names(text)) == [("A", 1), ("B", 2), ("C", 4)]
    assert LIKE_A_CLASS.findall(text) == ["A", "B", "C"]
