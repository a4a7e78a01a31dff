"""Questions that cannot be read are refused in our own words: which field, what stands there, what must."""

import pytest

from fairlead_bus import Asked, Rejected
from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.messages.questions import (
    ANSWER_QUESTION,
    EXPLAIN_QUESTION,
    MOST_ANSWERS,
    PROBLEM,
    QUEUE_QUESTION,
    Problem,
)
from fairlead_scorer.query.question_reading import read_question


def problem_of[T: Message](codec: Codec[T], payload: bytes) -> Problem:
    with pytest.raises(Rejected) as caught:
        read_question(codec, Asked(subject="ask.queue._", headers={}, payload=payload))
    return PROBLEM.decode(caught.value.payload)


@pytest.mark.parametrize(
    ("codec", "payload", "field", "value", "reason"),
    [
        (QUEUE_QUESTION, b'{"limit": -1}', "limit", "-1", "must be a whole number from 0"),
        (QUEUE_QUESTION, b'{"limit": "5"}', "limit", '"5"', "must be a whole number from 0"),
        (QUEUE_QUESTION, b'{"pool": 7}', "pool", "7", "must be text or null"),
        (QUEUE_QUESTION, b"[]", "question", "", "must be a mapping of keys and values, and is a list"),
        (QUEUE_QUESTION, b"null", "question", "", "is empty"),
        (EXPLAIN_QUESTION, b"{}", "job", "", "is missing"),
        (ANSWER_QUESTION, b'{"submissions": ["a", 1]}', "submissions[1]", "1", "must be text"),
    ],
)
def test_a_field_that_is_wrong_is_told_with_what_must_stand_there(
    codec: Codec[Message], payload: bytes, field: str, value: str, reason: str
) -> None:
    assert problem_of(codec, payload) == Problem(field=field, value=value, reason=reason)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"{nonsense", "a key in double quotes must stand here"),
        (b'{"limit": 1', "the text ends here, before its last value does"),
        (b'{"pool": "\xff"}', "UTF-8"),
        (b"[" * 5000, "nest"),
        (b'{"pool": ' + b"9" * 20_000, "16384 bytes"),
    ],
)
def test_what_is_no_json_is_told_by_its_place(payload: bytes, said: str) -> None:
    found = problem_of(QUEUE_QUESTION, payload)
    assert found.field == "question"
    assert said in found.reason
    assert "msgspec" not in found.reason
    assert "$" not in found.reason


def test_more_submissions_than_an_answer_holds_are_told_by_their_number() -> None:
    many = b",".join([b'"a"'] * (MOST_ANSWERS + 1))
    found = problem_of(ANSWER_QUESTION, b'{"submissions": [%s]}' % many)
    assert (found.field, found.reason) == ("submissions", f"must be a list of up to {MOST_ANSWERS:,} or null")
