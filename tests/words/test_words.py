"""docs/words.md: every sentence that Fairlead says to people, and what a machine can check of the style page.

By hand, after a sentence changed (`make words`):

    python tests/words/test_words.py write
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby

import pytest

from fairlead_testkit.source.sentences import ROOT, VOICES, Sentence, by_voice, our_classes

PAGE = ROOT / "docs" / "words.md"
MOST_WORDS = 25
"""The most words in a sentence, or in a clause that a colon or a semicolon ends."""
RIDDLES = {
    "that which": r"\bthat which\b",
    "is no": r"(?<![Tt]here )\b(?:is|are) no (?!longer|more)\w",
    "cannot be learnt": r"\bcannot be learnt\b",
    "that stand, stand": r"\b(\w+) that (\w+), \2\b",
    "a unit is missing": r"\{\w*seconds\}(?! s\b)",
}
"""Patterns of riddles, by what is told of each. CONTRIBUTING.md has the pairs."""
OF_OTHERS = {
    "ClusterQueue",
    "LocalQueue",
    "ConfigMap",
    "FairSharing",
    "NodePool",
    "PriorityClass",
    "PyTorchJob",
    "ResourceFlavor",
    "WorkloadPriorityClass",
}
"""Classes of ours that have the name of what they stand for in Kubernetes and Kueue: people know these."""
COMMANDS = (
    "kubectl ",
    "apiVersion: ",
    "sacctmgr ",
    "scontrol ",
    "squeue ",
    "fairlead ",
    "metadata: ",
    "grants: ",
    "tenants: ",
)
"""A remedy that is typed or pasted is as long as it is."""
_WORD = re.compile(r"[A-Za-z0-9{][\w'{}…./-]*")
_NAME = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+?(?:s|es)?\b")


def page() -> str:
    """The list as it is kept."""
    lines = ["# What Fairlead says", "", INTRODUCTION, ""]
    for voice, found in _all().items():
        lines += [f"## {voice[0].upper()}{voice[1:]}", ""]
        for where, group in groupby(found, key=lambda one: one.where):
            lines += [f"`{where.partition('/src/')[2]}`", "", *(f"- {_shown(one.text)}" for one in group), ""]
    return "\n".join(lines).rstrip() + "\n"


INTRODUCTION = """Every sentence of `explain`, `queue`, `doctor`, refusals, Events, settings and commands, by the module that says it;
`{…}` stands for what is filled in. The list is made by `make words`: who changes a sentence makes it anew, and reads the new
one against [the style page](../CONTRIBUTING.md#how-we-write). A test checks that, and what can be checked of the style."""


def _shown(text: str) -> str:
    return re.sub(r"([<>*_|])", r"\\\1", text) if "`" not in text else text


def faults(one: Sentence) -> Iterator[str]:
    """Faults of a sentence by the style page."""
    for name, pattern in RIDDLES.items():
        if re.search(pattern, one.text):
            yield name
    for name in _NAME.findall(one.text):
        singular = {name, name.removesuffix("s"), name.removesuffix("es")}
        if singular & our_classes() and not singular & OF_OTHERS:
            yield f"{name} is a class of ours"
    if not one.text.startswith(COMMANDS):
        for clause in re.split(r"(?<=[.;:?])\s", one.text):
            if len(_WORD.findall(clause)) > MOST_WORDS:
                yield f"more than {MOST_WORDS} words: {clause}"


@cache
def _all() -> dict[str, list[Sentence]]:
    return dict(by_voice())


def test_the_list_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "a sentence changed: `make words`, and read what it writes"
    )


@pytest.mark.parametrize("voice", VOICES)
def test_sentences_are_as_the_style_page_wants_them(voice: str) -> None:
    found = _all()[voice]
    assert len(found) > 20, "the modules that speak have moved: tell tests/words/sentences.py where"
    assert [f"{one.where}: {one.text!r}: {fault}" for one in found for fault in faults(one)] == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("must be that which was asked for", "that which"),
        ("is no duration", "is no"),
        ("there is no pool of that name", None),
        ("the levels that stand, stand", "that stand, stand"),
        ("waited {waited_seconds} so far", "a unit is missing"),
        ("waited {waited_seconds} s so far", None),
        ("give the tenants LocalQueues of one ClusterQueue", None),
        ("the TenantQueue has nothing", "TenantQueue is a class of ours"),
        (f"it says {'more and ' * 13}more", "more than 25 words: "),
    ],
)
def test_the_check_finds_what_it_is_for(text: str, fault: str | None) -> None:
    found = list(faults(Sentence("here", text)))
    assert found == [] if fault is None else found[0].startswith(fault)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
