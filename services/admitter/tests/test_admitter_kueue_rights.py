from fairlead_admitter.frontends.kueue.rights import FORGOTTEN_SECONDS, AccessRight, FreshRefusals
from fairlead_testkit.timing.in_hand import ManualClock

A, B = (AccessRight(namespace, "create", "jobs") for namespace in ("team-a", "team-b"))


def test_a_refusal_is_believed_once_it_has_been_the_only_answer_for_long_enough() -> None:
    clock = ManualClock(100.0)
    refusals = FreshRefusals(10.0, clock)
    assert not refusals.believe(A)
    clock.now += 9.0
    assert not refusals.believe(A)
    assert not refusals.believe(B)
    clock.now += 1.0
    assert refusals.believe(A)
    assert not refusals.believe(B)


def test_what_was_allowed_or_long_ago_begins_a_new_row() -> None:
    clock = ManualClock(100.0)
    refusals = FreshRefusals(10.0, clock)
    refusals.believe(A)
    clock.now += 11.0
    refusals.granted(A)
    assert not refusals.believe(A)
    clock.now += FORGOTTEN_SECONDS + 1
    assert not refusals.believe(A)


def test_a_lead_begins_without_what_was_refused_in_an_earlier_one() -> None:
    """Two starts of the API server, and another replica led between them: it was granted what this one was refused."""
    clock = ManualClock(100.0)
    refusals = FreshRefusals(10.0, clock)
    refusals.believe(A)
    clock.now += 15.0
    refusals.begin_anew()
    assert not refusals.believe(A)


def test_without_patience_every_refusal_is_believed() -> None:
    assert FreshRefusals(0.0).believe(A)


def test_what_else_is_allowed_in_the_namespace_says_nothing_of_a_refused_right() -> None:
    clock = ManualClock(100.0)
    refusals = FreshRefusals(10.0, clock)
    refusals.believe(A)
    for _ in range(2):
        clock.now += 5.0
        refusals.granted(AccessRight("team-a", "get", "pods"))
    assert refusals.believe(A)
