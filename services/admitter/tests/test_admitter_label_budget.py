"""The budget of labels: a bounded part of the time in which Kueue could admit goes into jobs that have no room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.decide.label_budget import OWED_SECONDS, SAVED_SECONDS, SHARE, LabelBudget
from fairlead_admitter.decide.pace import MANY_STARTS


class Kept:
    """A budget with a clock of its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.budget = LabelBudget(lambda: self.now)

    def most(self) -> int | None:
        """Number of labels that may go now, where many jobs start."""
        return self.budget.most(MANY_STARTS)


def test_labels_are_not_counted_where_few_jobs_start_or_nothing_was_answered_yet() -> None:
    kept = Kept()
    assert kept.most() is None
    kept.budget.spend(100, [1.0])
    assert kept.most() == 0
    assert kept.budget.most(MANY_STARTS - 1) is None


def test_a_frontend_that_answers_quickly_takes_many_at_once_and_a_slow_one_few() -> None:
    kept = Kept()
    kept.budget.spend(0, [0.005])
    assert kept.most() == 50
    kept.budget.spend(0, [0.1])
    assert kept.most() == 2
    kept.budget.spend(0, [5.0])
    assert kept.most() == 1, "one shows whether it is still so slow"


def test_what_is_owed_is_made_up_for_and_no_more_than_that_is_owed() -> None:
    kept = Kept()
    kept.budget.spend(1, [60.0])
    kept.now += -OWED_SECONDS / SHARE - 0.001
    assert kept.most() == 0
    kept.now += 0.002
    assert kept.most() == 1


def test_what_is_saved_up_is_bounded() -> None:
    kept = Kept()
    kept.now += 3600
    kept.budget.spend(0, [0.01])
    assert kept.most() == SAVED_SECONDS / 0.01


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0.001, 0.3)), min_size=1, max_size=60))
def test_trials_in_vain_take_their_share_of_the_time_and_what_was_saved_up(
    turns: list[tuple[float, float]],
) -> None:
    kept, used = Kept(), 0.0
    for rest, answer in turns:
        kept.now += rest
        kept.budget.spend(0, [answer])
        labels = kept.most() or 0
        kept.budget.spend(labels, [answer] * labels)
        used += labels * answer
    one_more = max(answer for _, answer in turns)
    assert used <= SHARE * (kept.now - 1000.0) + SAVED_SECONDS + one_more


@pytest.mark.parametrize("answer", [0.005, 0.02, 0.1])
def test_in_the_long_run_the_share_is_used_and_not_more(answer: float) -> None:
    kept, labels = Kept(), 0
    kept.budget.spend(0, [answer])
    for _ in range(1000):
        kept.now += 0.1
        wanted = min(32, kept.most() or 0)
        kept.budget.spend(wanted, [answer] * wanted)
        labels += wanted
    assert labels * answer == pytest.approx(SHARE * 100 + SAVED_SECONDS, rel=0.05)
