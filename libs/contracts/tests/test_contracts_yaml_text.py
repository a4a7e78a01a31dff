"""YAML texts: values as PyYAML's safe loader makes them, exponents that it takes for text, each problem with its place."""

import random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.base.quantities import exponent_hint
from fairlead_contracts.base.yaml_text import (
    YamlError,
    parse_yaml,
    read_yaml,
    write_yaml,
)
from fairlead_contracts.policyfile.read import decode_document, read_document
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot
from fairlead_testkit.inputs.fuzz_inputs import a_policy, a_snapshot
from fairlead_testkit.inputs.fuzz_texts import as_yaml

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.sampled_from(
        ["010", "1:30", "yes", "No", "~", "<<", "=", "1e3", ".5", "2026-11-22", "0x1F", "&a", "*a"]
    ),
)
VALUES = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(), part, max_size=4)
)


@given(value=VALUES, flow=st.sampled_from([None, True, False]))
def test_what_pyyaml_writes_is_read_as_it_reads_it(value: object, flow: bool | None) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    # Its own parser, since PyYAML writes some line ends in a way that libyaml folds to a blank.
    assert read_yaml(text) == yaml.load(text, Loader=yaml.CSafeLoader)


@given(value=VALUES)
def test_what_is_written_is_read_as_it_was(value: object) -> None:
    assert read_yaml(write_yaml(value)) == value


WORDS = [
    "yes",
    "on",
    "OFF",
    "True",
    "~",
    "null",
    "1",
    "-2",
    "+3",
    "1_000",
    "1.5",
    "1.0e+3",
    "1e3",
    ".inf",
    "-.5",
    "2026-11-22",
    "12",
    "a",
    "<<a",
    "=",
    "@",
    "-",
    "1.2.3",
    "0",
    "0.0",
    "1.",
    "-",
]


@given(
    st.lists(
        st.sampled_from([*WORDS, "2026-11-21T12:00:00Z", "2026-11-21 12:00:00.5 +02:00", "a b"]), max_size=9
    )
)
def test_plain_words_mean_what_pyyaml_makes_of_them(words: list[str]) -> None:
    text = "".join(f"- {word}\n" for word in words if word not in {"@", "="})
    assert read_yaml(text) == yaml.safe_load(text)


@pytest.mark.parametrize("seed", range(20))
def test_documents_in_every_layout_mean_what_pyyaml_makes_of_them(seed: int) -> None:
    rng = random.Random(seed)
    for document in (a_policy(rng), a_snapshot(rng)):
        text = as_yaml(rng, document)
        assert read_yaml(text) == yaml.safe_load(text) == document


@pytest.mark.parametrize(
    "text",
    [
        "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n",
        "a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc: {<<: [*a, *b], w: 0}\n",
        "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {z: 3, <<: *b}\n",
        "a: &a [1, {b: 2}]\nc: [*a, *a]\n",
        "? a\n: b\n",
        "- !!str 010\n- ! 12\n- '12'\n",
        "a: |\n  text\n  more\nb: >-\n  folded\n  text\n",
    ],
)
def test_aliases_and_merge_keys_mean_what_pyyaml_makes_of_them(text: str) -> None:
    assert read_yaml(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ("aging:\n  cap_days: 1:30\n", "aging.cap_days", "line 2, column 13: must be a decimal number"),
        ("- a\n- [x, 010]\n", "[1][1]", "line 2, column 7: must be a decimal number"),
        ("a: 1\nb: 2\na: 3\n", "a", "line 3, column 1: key 'a' is given in line 1 already"),
        ("x: {1: a, 1: b}\n", "x.1", "line 1, column 11: key 1 is given in line 1 already"),
        ("a: &a {b: 1}\nc: {<<: *a, <<: *a}\n", "c.<<", "the merge key << is given in line 2 already"),
        ("{~: 1, null: 2}\n", "null", "line 1, column 8: key null is given in line 1 already"),
        ("{'': 1, '': 2}\n", '""', "line 1, column 9: key '' is given in line 1 already"),
        ("a: 2026-13-45\n", "a", "line 1, column 4: is a date or time that there is not"),
        ("a: 2026-11-21T12:00:00+99:99\n", "a", "line 1, column 4: is a date or time that there is not"),
        ("a: " + "9" * 5000, "a", "line 1, column 4: is a number of more digits than can be read"),
        ("a: !!set {b}\n", "a", "line 1, column 4: the tag tag:yaml.org,2002:set means nothing here"),
        ("a: !x 1\n", "a", "line 1, column 4: the tag !x means nothing here"),
        ("? [a, b]\n: c\n", "document", "is a list or mapping in the place of a key"),
        ("a: {\n  <<: 3}\n", "a", "line 2, column 3: the merge key << takes a mapping, or a list of them"),
    ],
)
def test_a_problem_names_its_path_and_place(text: str, field: str, reason: str) -> None:
    [problem] = parse_yaml(f"{text}").problems
    assert problem.field == field
    assert reason in problem.reason
    with pytest.raises(YamlError):
        read_yaml(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "line 2, column 1"),
        ("*a", r"line 1, column 1: \*a stands for nothing"),
        ("[&a 1, &a 2]", "line 1, column 8: &a is given to two values"),
        ("a\n---\nb\n", "line 2, column 1: several documents"),
        (
            "a: {b\nc: d",
            "^line 2, column 2: did not find expected ',' or '}' while parsing a flow mapping of line 1, column 4$",
        ),
        (b"a: \xff", "^line 1, column 4: its text must be in UTF-8$"),
        (b"\xff\xfe\xff", "."),
        ("a:\n\t- b\n", "^line 2, column 1: a tab stands where YAML takes spaces alone$"),
        (
            b"\xc3\xa4:\r\n  b: c\r\n\td: e\r\n",
            "^line 3, column 1: a tab stands where YAML takes spaces alone$",
        ),
        ("a: @b\n", "^line 1, column 4: found character that cannot start any token"),
        ("ä: b\nü: \x00", "^line 2, column 4: control characters are not allowed$"),
    ],
)
def test_what_is_no_yaml_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(YamlError, match=reason):
        read_yaml(text)


def test_an_odd_number_hides_nothing_else_and_is_told_once() -> None:
    text = "aging: {cap_days: 11:00, entitlement_per_day: -1}\nwindow: 0\nclases: [a]\n"
    found = parse_yaml(text)
    with pytest.raises(DocumentError) as raised:
        read_document(found.only, unread=found.problems)
    assert [problem.field for problem in raised.value.problems] == [
        "aging.cap_days",
        "clases",
        "aging.entitlement_per_day",
        "window",
    ]
    found = parse_yaml("now: 11:00\njobs: [{id: a}]\n")
    with pytest.raises(DocumentError) as raised:
        read_snapshot(found.only, unread=found.problems)
    fields = [problem.field for problem in raised.value.problems]
    assert fields.count("now") == 1
    assert {"now", "jobs[0].tenant", "pools"} <= set(fields)


def test_an_empty_text_is_told_to_be_empty() -> None:
    assert read_yaml("") is read_yaml("# nothing\n") is read_yaml("---\n") is None
    assert parse_yaml("").documents == []
    with pytest.raises(DocumentError, match=r"document: is empty$"):
        read_document(None)
    with pytest.raises(DocumentError, match=r"document: is empty$"):
        decode_document(b" \n")
    with pytest.raises(DocumentError, match=r"snapshot: is empty$"):
        read_snapshot(None)
    with pytest.raises(DocumentError, match=r"snapshot: is empty$"):
        decode_snapshot(b"")


def refused(text: str, *, snapshot: bool = False) -> FieldError:
    found = yaml.safe_load(text)
    with pytest.raises(DocumentError) as caught:
        read_snapshot(found) if snapshot else read_document(found)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("text", "field", "forms"),
    [
        ("tenants: [{name: a, weight: 1e3}]", "tenants[0].weight", "1000 or 1.0e+3"),
        ("window: 2E1", "window", "20"),
        ("half_life_hours: 1.5e2", "half_life_hours", "150 or 1.5e+2"),
        ("aging: {entitlement_per_day: 6e-2}", "aging.entitlement_per_day", "0.06 or 6.0e-2"),
        ("resource_weights: {cpu: 1e1}", "resource_weights.cpu", "10 or 1.0e+1"),
        ("unlisted_weight: 1e+90", "unlisted_weight", "1.0e+90"),
    ],
)
def test_a_policy_says_how_to_write_it(text: str, field: str, forms: str) -> None:
    problem = refused(text)
    assert problem.field == field
    assert problem.reason.endswith(f"; this is text: write the number {forms}, without quotes")


AROUND = "{now: %s, pools: [{name: p, capacity: {cpu: 1e3}}], tenants: [{name: a}], jobs: [%s]}"


@pytest.mark.parametrize(
    ("now", "job", "field"),
    [
        ("1.76e9", "", "now"),
        ("1", "{id: j, tenant: a, submitted: 1e3, demand: {}}", "jobs[0].submitted"),
        ("1", "{id: j, tenant: a, submitted: 1, demand: {}, runtime_limit: 36e2}", "jobs[0].runtime_limit"),
        ("1", "{id: j, tenant: a, submitted: 1, demand: {}, level: 1e1}", "jobs[0].level"),
    ],
)
def test_a_snapshot_says_how_to_write_it(now: str, job: str, field: str) -> None:
    problem = refused(AROUND % (now, job), snapshot=True)
    assert problem.field == field
    assert "; this is text: write the number " in problem.reason


@pytest.mark.parametrize(
    "found", [1000, 1e3, None, "", "e3", "1000", "1e", "0x1e3", "1e9999", "team-1e3", ["1e3"]]
)
def test_nothing_is_said_of_what_is_no_such_number(found: object) -> None:
    assert not exponent_hint(found)


def test_a_whole_number_is_not_written_with_an_exponent() -> None:
    assert "1000," in exponent_hint("1e3", whole=True)
    assert not exponent_hint("1e-3", whole=True)


@pytest.mark.parametrize("text", ["1e3", "-2.5E-7", "+1.e+3", ".5e1", "123456789e90", "0e0"])
def test_yaml_takes_each_form_for_the_number(text: str) -> None:
    forms = (
        exponent_hint(text).removeprefix("; this is text: write the number ").removesuffix(", without quotes")
    )
    for form in forms.split(" or "):
        assert yaml.safe_load(form) == float(text)
