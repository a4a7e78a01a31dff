"""How well a cluster followed the order, in words."""

from datetime import UTC, datetime

import msgspec

from fairlead_cli.client.words import adherence_in_words
from fairlead_contracts.messages.questions import Adherence

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def test_what_was_not_seen_is_not_claimed() -> None:
    nothing = Adherence(since=NOW, admissions=0, missed=0, idle={})
    assert "no admission judged since" in adherence_in_words(nothing)
    assert "nothing idle" in adherence_in_words(nothing)
    apart = msgspec.structs.replace(nothing, newcomers=3, takeovers=2)
    told = "(not judged: 3 that had just come and 2 while the lead changed hands)"
    assert told in adherence_in_words(apart)
    unknown = msgspec.structs.replace(nothing, newcomers=3, unordered=4, unseen=5)
    told = "(not judged: 3 that had just come, 4 while there was no order and 5 while the admitter did not know everything)"
    assert told in adherence_in_words(unknown)
    cores = Adherence(since=NOW, admissions=4, missed=0, idle={"cpu": 2000.0, "memory": 1e12})
    assert adherence_in_words(cores).startswith(
        "0 of 4 admissions out of order (0%), 2.0 core-seconds idle (0.50 an admission)"
    )


def test_memory_and_cores_of_cards_are_no_cards_that_stand_idle() -> None:
    idle = {"nvidia.com/gpu": 2000.0, "nvidia.com/gpumem": 2e7, "nvidia.com/gpucores": 60_000.0}
    assert ", 2.0 GPU-seconds idle (0.50 an admission)," in adherence_in_words(
        Adherence(since=NOW, admissions=4, missed=0, idle=idle)
    )
