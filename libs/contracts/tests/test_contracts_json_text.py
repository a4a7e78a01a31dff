"""JSON texts that are broken: told in our words, with line and column; and places of what is wrong in others."""

import datetime as dt
import json
import random
import time
from typing import Any

import pytest

from fairlead_contracts.base.errors import DocumentError, FieldError, shown, why_unread
from fairlead_contracts.base.json_text import WRITTEN_BY_HAND, JsonError, parse_json, places, with_json_places
from fairlead_contracts.base.places import DEEPEST
from fairlead_contracts.base.yaml_text import places as places_of_yaml
from fairlead_contracts.policyfile.read import decode_document, read_document
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot
from fairlead_testkit.inputs.fuzz_inputs import a_policy, a_snapshot


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1, column 1: the text ends here"),
        ('{"a": 1', "line 1, column 8: the text ends here"),
        ('{"a": 1,\n "b": [1,\n\n', "line 2, column 10: the text ends here"),
        ('{"a": 1,\n "b": "c}', "line 2, column 7: the text that begins here has no end"),
        ('{"a": 1,\n "b": nan}', "line 2, column 7: a value must stand here, and this is none"),
        ('{"a": 010}', "line 1, column 8: a comma, or the end of the list or mapping, must stand here"),
        ('{"a" 1}', "line 1, column 6: a colon must stand here"),
        ("{a: 1}", "line 1, column 2: a key in double quotes must stand here"),
        ('{"a": [1,]}', "line 1, column 9: no comma may stand behind the last value"),
        ('{"a": 1,}', "line 1, column 8: no comma may stand behind the last value"),
        ('{"a": 1}\n{"a": 2}', "line 2, column 1: the JSON ends before this"),
        ('{"a": "b\tc"}', "line 1, column 9: a line end, tab or other control character in a text must be"),
        ('{"a": "\\q"}', "line 1, column 8: JSON has no such escape"),
        ('{"a": "\\u12"}', "line 1, column 9: four hexadecimal digits must stand behind \\u"),
        (
            "[\n" + "[" * DEEPEST,
            f"line 2, column {DEEPEST}: lists and mappings nest more than {DEEPEST} deep",
        ),
        ('["\\"[", ' + '{"a":' * 100_000, f"lists and mappings nest more than {DEEPEST} deep"),
        (f'{{"a": {"9" * 5000},\n}}', "line 1, column 5007: no comma may stand behind the last value"),
        (f"[{'9' * 5000},\n" + " " * WRITTEN_BY_HAND + "[" * 200_000, f"nest more than {DEEPEST} deep"),
    ],
)
def test_what_is_no_json_is_told_in_our_words_with_its_place(text: str, told: str) -> None:
    with pytest.raises(JsonError) as caught:
        parse_json(text.encode())
    assert told in str(caught.value)


def test_what_is_no_text_is_told_with_its_place() -> None:
    with pytest.raises(JsonError, match=r"^line 2, column 3: its text must be in UTF-8$"):
        parse_json('{"ä": 1,\n ü\xff'.encode()[:-2] + b"\xff}")


def test_as_deep_as_can_be_is_read_and_brackets_in_texts_do_not_count() -> None:
    assert parse_json(b"[" * DEEPEST + b"]" * DEEPEST)[1] == []
    brackets = "[" * 500 + '"' + "{" * 500
    assert parse_json(json.dumps([brackets] * 9).encode()) == ([brackets] * 9, [])


def test_beyond_what_people_write_only_what_cannot_be_read_is_too_deep() -> None:
    filler = b" " * WRITTEN_BY_HAND
    assert parse_json(filler + b"[" * 500 + b"]" * 500)[1] == []
    with pytest.raises(JsonError, match=f"line 1, column {WRITTEN_BY_HAND + DEEPEST + 1}: lists"):
        parse_json(filler + b"[" * 200_000)


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_of_too_many_digits_is_told_by_its_field(sign: str) -> None:
    found, [problem] = parse_json(f'{{"a": [1, {{"b": {sign}{"9" * 5000}}}], "c": {"9" * 400}}}'.encode())
    assert (problem.field, problem.reason) == ("a[1].b", "has 5000 digits, more than can be read")
    assert str(problem).endswith(f"(found {sign}{'9' * 20}{'9' * (99 - len(sign))}…)")
    assert isinstance(found, dict)
    assert found["c"] == int("9" * 400)
    text = b'{"now": 1,\n "pools": [{"name": "p", "capacity": {"cpu": ' + b"9" * 5000 + b"}}]}"
    with pytest.raises(DocumentError) as caught:
        decode_snapshot(text)
    [told] = with_json_places(caught.value.problems, text)
    assert str(told).startswith("pools[0].capacity.cpu: line 2, column 46: has 5000 digits")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("indent", [None, 1])
def test_fields_stand_where_the_reader_of_yaml_finds_them(seed: int, indent: int | None) -> None:
    rng = random.Random(seed)
    for document in (a_policy(rng), a_snapshot(rng)):
        text = json.dumps(document, indent=indent, ensure_ascii=False)
        assert places(text.encode()) == places_of_yaml(text)


def test_places_are_found_where_yaml_has_none() -> None:
    text = '{\t"a\\/b": {"\\ud83d\\ude00":\n"x,[{:\\"", "": [\n 5, {"k": null}]}}'
    assert places(text.encode()) == {
        "a/b": "line 1, column 3: ",
        "a/b.\N{GRINNING FACE}": "line 2, column 1: ",
        'a/b.""': "line 2, column 12: ",
        'a/b.""[0]': "line 3, column 2: ",
        'a/b.""[1]': "line 3, column 5: ",
        'a/b.""[1].k': "line 3, column 11: ",
    }


def test_a_program_wrote_what_is_long_and_is_told_no_places() -> None:
    problem = FieldError("a", 1, "is wrong")
    assert with_json_places([problem], b'{"a": 1}' + b" " * WRITTEN_BY_HAND) == [problem]


@pytest.mark.parametrize("found", ["-----BEGIN PRIVATE KEY-----", ["secret"], 12345, True])
def test_a_document_that_is_none_is_not_quoted(found: object) -> None:
    for read in (read_document, read_snapshot):
        with pytest.raises(DocumentError, match=r"must be a mapping of keys and values, and is [a-z ]+$"):
            read(found)


def test_what_a_terminal_would_obey_is_told_as_escapes() -> None:
    problem = FieldError(
        "a\n\x1b[31m\u202e\ud800", "\x9b\N{RIGHT-TO-LEFT OVERRIDE}\udc00ä", "is none of b\ud800"
    )
    assert str(problem) == 'a\\n\\x1b[31m\\u202e\\ud800: is none of b\\ud800 (found "\\x9b\\u202e\\udc00ä")'
    assert len(str(FieldError("k" * 100_000, "v" * 100_000, "is wrong"))) < 400


def test_what_no_decoder_follows_is_told_without_its_own_words() -> None:
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    assert shown(deep) == "a value that nests too deeply"
    while deep:
        [deep] = deep  # taken apart from outside: its own end would recurse as deeply
    assert (
        why_unread(RecursionError("maximum recursion depth exceeded")) == "lists and mappings nest too deeply"
    )
    with pytest.raises(
        DocumentError, match=r"^document: is not valid JSON: lists and mappings nest too deeply$"
    ):
        decode_document(b"[" * 100_000)
    with pytest.raises(DocumentError, match=r"^document: is not valid JSON: its text must be in UTF-8$"):
        decode_document(b'{"\xff": 1}')


@pytest.mark.parametrize(
    "text", ['{"a":' * 100_000, '"' + '\\"' * 300_000, "{" * 100_000, '["' + '\\"' * 300_000, '{"\xff"' * 9]
)
def test_what_is_broken_is_looked_through_once(text: str) -> None:
    started = time.process_time()
    written = text.encode("latin-1")
    with pytest.raises(DocumentError) as caught:
        decode_snapshot(written)
    assert with_json_places(caught.value.problems, written)
    assert time.process_time() - started < 5, "a second try for each quotation mark would take minutes"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (dt.date(2026, 11, 21), "2026-11-21"),
        ({dt.date(2026, 11, 21): 1}, "a mapping"),
        ([dt.date(2026, 11, 21)], "a list"),
    ],
)
def test_values_of_yaml_alone_are_quoted_without_the_names_of_their_classes(value: object, told: str) -> None:
    assert shown(value) == told
