from fairlead_admitter.frontends.kueue_rights import FORGOTTEN_SECONDS, FreshRefusals


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_refusal_is_believed_once_it_has_been_the_only_answer_for_long_enough() -> None:
    clock = Clock()
    refusals = FreshRefusals(10.0, clock)
    assert not refusals.believe("a")
    clock.now += 9.0
    assert not refusals.believe("a")
    assert not refusals.believe("b")
    clock.now += 1.0
    assert refusals.believe("a")
    assert not refusals.believe("b")


def test_what_was_allowed_or_long_ago_begins_a_new_row() -> None:
    clock = Clock()
    refusals = FreshRefusals(10.0, clock)
    refusals.believe("a")
    clock.now += 11.0
    refusals.granted("a")
    assert not refusals.believe("a")
    clock.now += FORGOTTEN_SECONDS + 1
    assert not refusals.believe("a")


def test_without_patience_every_refusal_is_believed() -> None:
    assert FreshRefusals(0.0).believe("a")
