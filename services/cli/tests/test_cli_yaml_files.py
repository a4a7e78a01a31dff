"""YAML that would end the process, never end, or mean another number than it looks like."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_cli.client.submitting.reading import read_file
from fairlead_cli.errors import InputError
from fairlead_cli.paper.reading import parse
from fairlead_cli.policy.files import parse_file
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.base.places import DEEPEST
from fairlead_contracts.base.yaml_text import YamlError, parse_yaml, read_yaml
from fairlead_testkit.processes.command import fairlead

LAUGHS = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
CHAIN = "a0: &a0 []\n" + "".join(f"a{n}: &a{n} {'[' * 90}*a{n - 1}{']' * 90}\n" for n in range(1, 40))

DEEP = ["[" * 30_000, "[" * 30_000 + "]" * 30_000, "- " * 30_000, "? " * 30_000, "{a: " * 30_000]
ENDLESS = ["tenants: &t\n- *t\n", "tenants: &t [*t]\n", "tenants: &t [{a: [*t]}]\n", "&a {*a : 1}\n"]


def as_policy(text: str) -> None:
    parse_file(text, name="file")


def as_snapshot(text: str) -> None:
    parse(text.encode(), name="file", is_yaml=True)


@pytest.mark.parametrize("read", [as_policy, as_snapshot])
@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (DEEP, rf"line 1, column \d+: lists and mappings nest more than {DEEPEST} deep"),
        (ENDLESS, r"line \d, column \d+: \*. stands inside the very block that it repeats"),
        (["a0: &a0 [1]\n" + LAUGHS], r"line 6, column \d+: \*a4 repeats too much"),
        ([CHAIN], r"line 3, column \d+: lists and mappings nest more than"),
    ],
)
def test_what_cannot_be_held_is_refused_where_it_begins(
    texts: list[str], reason: str, read: Callable[[str], None]
) -> None:
    for text in texts:
        with pytest.raises(InputError, match=reason):
            read(text)


@pytest.mark.parametrize("command", [["policy", "check"], ["order"]])
def test_a_deep_file_ends_the_command_with_an_error_and_not_with_a_signal(
    command: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "deep"
    path.write_text("[" * 30_000)
    run = fairlead(*command, str(path))
    assert (run.returncode, "nest more than" in run.stderr) == (2, True), run.stderr


@pytest.mark.parametrize("text", [*DEEP, *ENDLESS])
def test_a_file_of_jobs_is_looked_over_too(text: str, tmp_path: Path) -> None:
    for name in ("jobs.yaml", "jobs.jsonl"):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=name):
            list(read_file(tmp_path / name))


def test_as_deep_as_can_be_is_read() -> None:
    assert read_yaml("[" * DEEPEST + "]" * DEEPEST) is not None
    with pytest.raises(YamlError):
        read_yaml("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))


def test_blocks_may_be_repeated() -> None:
    text = "a: &a {x: &x [1, 2], y: *x}\nb: [*a, *a]\nc: {<<: *a, y: 3}\n"
    inner = {"x": [1, 2], "y": [1, 2]}
    assert read_yaml(text) == {"a": inner, "b": [inner, inner], "c": {"x": [1, 2], "y": 3}}
    many = "a: &a [" + "x, " * 50 + "]\nb:\n" + "- {id: 1, a: *a}\n" * 1000
    assert isinstance(read_yaml(many), dict)


def test_anchors_hold_in_their_own_document() -> None:
    assert parse_yaml("&a [1]\n---\n[&a 2, *a]\n---\n").documents == [[1], [2, 2], None]


@pytest.mark.parametrize(
    "number", ["1:30", "-1:30:00.5", "010", "+0_7", "0x1F", "0b101", "190:20:30", "00", "0b_"]
)
def test_numbers_that_are_not_decimal_are_refused(number: str) -> None:
    for text in (f"aging: {{entitlement_per_day: {number} }}", f"tenants:\n- name: a\n  weight: {number}\n"):
        with pytest.raises(InputError) as raised:
            parse_file(text, name="file")
        [problem] = raised.value.problems
        assert re.fullmatch(
            rf".*: line \d, column \d+: must be a decimal number, or text in quotes .*{re.escape(number)}.*",
            problem,
        )


@pytest.mark.parametrize(
    "word", ['"010"', "'1:30'", "!!str 010", "2026-11-21T12:00:00Z", "0", "10.50", "-0.5"]
)
def test_what_only_looks_like_such_a_number_is_taken(word: str) -> None:
    assert read_yaml(f"a: {word}") is not None


@pytest.mark.parametrize(
    "value", ["2026-13-45", "9" * 5000, "!!int x", "!!bool x", "!!binary ü", "!!set {a}"]
)
def test_what_makes_no_value_is_an_error_of_the_file(value: str) -> None:
    for read in (as_policy, as_snapshot):
        with pytest.raises((InputError, DocumentError)):
            read(f"window: {value}\n")


@settings(max_examples=300, deadline=None)
@given(
    text=st.lists(
        st.sampled_from([*"[]{}-:,?&*!|>'\"#\n ", "&a ", "*a", "a", "<<: ", "- ", "010", "---\n"]),
        max_size=40,
    ).map("".join)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(YamlError):
        read_yaml(text)
