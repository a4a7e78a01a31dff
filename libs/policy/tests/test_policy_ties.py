"""Ties that are kept in order."""

from fairlead_policy import TieIndex


def test_many_ties_at_once_are_sorted_as_few_are() -> None:
    index = TieIndex()
    for number in range(500, 0, -1):
        index.put(f"u{number}", number)
    for number in range(1, 250):
        index.discard(f"u{number}")
    index.put("u300", 1000)
    assert index.first_outside({"u250"}) == (251, "u251")
    assert len(index) == 251
