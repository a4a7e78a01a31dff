"""Unschedulable reasons as numbers: term, what is wanted, what there is, unit, who."""

import pytest

from fairlead_contracts.messages.questions import Shortfall
from fairlead_policy.fit.unschedulable import (
    CardShort,
    GangShort,
    NodeShort,
    NoMatch,
    PodsShort,
    PoolFull,
    TooFewCards,
    TotalShort,
    UnschedulableReason,
)
from fairlead_scorer.query.fitting import shortfalls_of


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (
            CardShort(shape="w", of="cores", wanted=9, largest=5, free=8, ever=7),
            ("card-cores", 5, 8, "%", "w"),
        ),
        (TooFewCards(shape="w", wanted=9, most=2, have=4), ("cards", 2, None, "cards", "w")),
        (NodeShort(shape="w", resource="cpu", wanted=9, largest=5, free=8, ever=7), ("cpu", 5, 8, "", "w")),
        (TotalShort(shape="w", resource="cpu", wanted=9, free=8), ("cpu", 8, 8, "", "w")),
        (PodsShort(shape="w", wanted=9, fits=3), ("pods", 3, None, "pods", "w")),
        (GangShort(wanted=9, fits=3), ("pods", 3, None, "pods", "the job's pods")),
        (PoolFull(pool="p", resource="cpu", wanted=9, left=3), ("cpu", 3, None, "", "p")),
    ],
)
def test_what_is_short_is_told_in_numbers(
    reason: UnschedulableReason, told: tuple[str, int, int | None, str, str]
) -> None:
    term, most, total, unit, who = told
    assert shortfalls_of("never", [reason]) == [
        Shortfall(answer="never", term=term, wanted=9, most=most, total=total, unit=unit, who=who)
    ]


def test_what_has_no_number_is_told_in_words_alone() -> None:
    assert shortfalls_of("never", [NoMatch(shape="w", labels={"gpu": "h100"})]) == []
