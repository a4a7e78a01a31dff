"""When strict queues are let go of, and when they are taken back."""

import pytest

from fairlead_cli.kueue.watchdog.leader_watch import Verdict, Vigil

WAIT, LOOSEN, TIGHTEN = Verdict.WAIT, Verdict.LOOSEN, Verdict.TIGHTEN


@pytest.mark.parametrize(
    ("seen", "verdicts"),
    [
        pytest.param(
            [(None, 0), (None, 9), (None, 10)], [WAIT, WAIT, LOOSEN], id="nobody from the first look"
        ),
        pytest.param(
            [("a", 0), ("a", 4), ("a", 5)], [WAIT, WAIT, TIGHTEN], id="somebody from the first look"
        ),
        pytest.param([("a", 0), (None, 9), (None, 18), (None, 19)], [WAIT, WAIT, WAIT, LOOSEN], id="it died"),
        pytest.param([(None, 0), ("a", 9), (None, 10), (None, 19)], [WAIT] * 4, id="it came for a moment"),
        pytest.param(
            [("a", 0), ("b", 4), ("b", 8), ("b", 9)], [WAIT, WAIT, WAIT, TIGHTEN], id="another lead"
        ),
    ],
)
def test_what_lasts_counts(seen: list[tuple[str | None, float]], verdicts: list[Verdict]) -> None:
    vigil = Vigil(after=10, back_after=5)
    assert [vigil.see(leader, now) for leader, now in seen] == verdicts
