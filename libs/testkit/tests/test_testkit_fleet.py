"""Questions to the scorers of a fleet, some of which cannot answer yet."""

from typing import cast

import pytest

from fairlead_bus import Bus, NobodyAnswersError, RemoteError
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.questions import PoolQueue
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.inputs.builders import a_queue_reply


class SlowScorers:
    """Gives each of these answers once, in their order; of an error it raises it."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)

    async def request(self, subject: str, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109 # as the bus has it
        del subject, payload, timeout
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_scorer_that_still_reads_is_asked_again() -> None:
    queue = PoolQueue(pool="gpu", waiting=0, positions=[])
    scorers = SlowScorers(
        RemoteError(503, "still reads", b""),
        NobodyAnswersError("none"),
        to_json(a_queue_reply(pools=[queue])),
    )
    assert await whole_queue(cast("Bus", scorers), "gpu") == queue


async def test_any_other_refusal_is_raised() -> None:
    with pytest.raises(RemoteError):
        await whole_queue(cast("Bus", SlowScorers(RemoteError(400, "no such question", b""))), "gpu")
