"""Odd names on a terminal: what would move its cursor or colour it is written out, for people alone."""

import msgspec
import pytest
from msgspec import UNSET

from fairlead_cli.client.explained import explain_text
from fairlead_cli.client.visible import visible
from fairlead_cli.printing import print_outcome
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.messages.questions import ExplainReply, Explanation
from fairlead_testkit.inputs.builders import NOON, a_queue_reply, a_tenants_reply

ODD = "red\x1b[31m\nline\ttab\x07\x9b\u202eright\u200b\u061c\ufeff"
SEEN = "red\\x1b[31m line tab\\x07\\x9b\\u202eright\\u200b\\u061c\\ufeff"


def explained(name: str) -> ExplainReply:
    found = Explanation(
        cluster="c1", scope="team-a", id=name, uid="u1", phase="held", queue="main", said=name, reasons=[f"Held: {name}."]
    )  # fmt: skip
    return ExplainReply(at=NOON, found=[found])


def test_control_characters_are_written_out_and_lines_of_a_text_joined() -> None:
    seen = visible(explained(ODD))
    assert seen == explained(SEEN)
    text = explain_text(seen)
    assert text.splitlines()[0] == f"team-a/{SEEN} on c1"
    assert all(letter.isprintable() for letter in text.replace("\n", ""))


@pytest.mark.parametrize("hidden", ["\x1b", "\x7f", "\u061c", "\u200b", "\ufeff", "\u00ad", "\U000e0041"])
def test_one_hidden_character_is_enough(hidden: str) -> None:
    seen = f"two{hidden.encode('unicode_escape').decode()}words"
    assert visible(explained(f"two{hidden}words")) == explained(seen)
    assert str(FieldError("jobs[0].id", UNSET, f"two{hidden}words")) == f"jobs[0].id: {seen}"


def test_a_name_is_one_line_that_drives_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever reads names line by line, as xargs does, is given no second one by a line break in the first."""
    found = explained("a\x1b]0;owned\x07\nteam-b/other")
    print_outcome(found, (one.id for one in found.found), "name")
    assert capsys.readouterr().out == "a\\x1b]0;owned\\x07\\nteam-b/other\n"


def test_keys_are_texts_too() -> None:
    [pool] = a_tenants_reply().pools
    odd = a_tenants_reply(pools=[msgspec.structs.replace(pool, capacity={ODD: 1})])
    assert visible(odd).pools[0].capacity == {SEEN: 1}


def test_what_is_plain_stays_as_it_is() -> None:
    for plain in (a_queue_reply(), a_tenants_reply(), explained("ä 名 \U0001f600 \\x1b")):
        assert visible(plain) == plain
