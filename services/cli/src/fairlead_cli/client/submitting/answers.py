"""Hearing the answers to submissions: live, and what was missed by asking for it.

The live ones reach a tenant's own account as they are published, once, and to nobody who is not connected. So the
scorers are asked for the answers to what is still open: after a reconnect, and when it was quiet for a while, then
less and less often.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import batched, groupby

from fairlead_bus import Asked, Bus, NobodyAnswersError, RemoteError, RetryableBusError
from fairlead_cli.client.submitting.following import SubmissionName
from fairlead_cli.signals import happens
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.messages.questions import ANSWER_REPLY, MOST_ANSWERS, AnswerQuestion
from fairlead_contracts.messages.submissions import ANSWER, AnyAnswer

QUIET_SECONDS = 5.0
MOST_QUIET_SECONDS = 300.0

type Take = Callable[[AnyAnswer], None]


@asynccontextmanager
async def hearing_answers(
    bus: Bus, tenant: str | None, take: Take, still_open: Callable[[], Sequence[SubmissionName]]
) -> AsyncIterator[None]:
    """Calls `take` with every answer from the beginning of the block to its end, at least once.

    Args:
        tenant: the one whose answers are heard; None for all, which takes an operator.
        take: hears them.
        still_open: the submissions that want answers.
    """
    missed = asyncio.Event()
    heard = asyncio.Event()

    async def hear(message: Asked) -> None:
        heard.set()
        _take_payload(take, message.payload)

    async with asyncio.TaskGroup() as group:
        stop = await bus.subscribe_core(subjects.answer_filter(tenant), hear)
        forget = bus.on_connection(lambda up: missed.set() if up else None)
        asking = group.create_task(_catch_up(bus, missed, heard, take, still_open), name="missed answers")
        try:
            yield
        finally:
            asking.cancel()
            forget()
            await stop()


async def _catch_up(
    bus: Bus,
    missed: asyncio.Event,
    heard: asyncio.Event,
    take: Take,
    still_open: Callable[[], Sequence[SubmissionName]],
) -> None:
    quiet = QUIET_SECONDS
    while True:
        heard.clear()
        if not await happens(missed, within=quiet) and heard.is_set():
            quiet = QUIET_SECONDS
            continue
        missed.clear()
        if await _asked(bus, take, still_open()):
            quiet = min(2 * quiet, MOST_QUIET_SECONDS)


async def _asked(bus: Bus, take: Take, names: Sequence[SubmissionName]) -> bool:
    """Takes the answers to these submissions; returns False where nobody gave them."""
    for tenant, of_tenant in groupby(names, key=lambda name: name[0]):
        for some in batched(of_tenant, MOST_ANSWERS, strict=False):
            if not await _asked_of_some(bus, take, tenant, [submission for _, submission in some]):
                return False
    return True


async def _asked_of_some(bus: Bus, take: Take, tenant: str, submissions: list[str]) -> bool:
    question = AnswerQuestion(submissions=submissions)
    while True:
        try:
            payload = await bus.request(subjects.ask("answer", tenant), to_json(question))
        except (NobodyAnswersError, RemoteError, RetryableBusError):
            return False
        reply = ANSWER_REPLY.decode(payload)
        for answer in reply.answers:
            _take_payload(take, bytes(answer))
        if not reply.more:
            return True
        question = AnswerQuestion(submissions=submissions, after=reply.after)


def _take_payload(take: Take, payload: bytes) -> None:
    """Takes an answer, unless this release cannot read it: it is of a newer one, and nobody is to be told."""
    with contextlib.suppress(ContractError):
        take(ANSWER.decode(payload))
