"""`fairlead cancel`: publish cancellations, and say what is answered to each."""

import asyncio
from collections.abc import Sequence

from fairlead_cli.client.connection import connected
from fairlead_cli.client.submitting.answers import hearing_answers
from fairlead_cli.client.submitting.following import SubmissionName
from fairlead_cli.client.submitting.publishing import pack, publish_all
from fairlead_cli.client.submitting.reading import Draft
from fairlead_cli.client.submitting.session import SOON_SECONDS, print_answer
from fairlead_cli.console import fail
from fairlead_cli.errors import NotRunningError
from fairlead_cli.options import Format
from fairlead_cli.signals import happens
from fairlead_contracts.messages.submissions import AnyAnswer, Cancelling, Ended, Refused, says_cancelled


class _Answers:
    """The answers to cancellations: the first one to each counts."""

    def __init__(self, names: Sequence[SubmissionName], form: Format) -> None:
        self.open = dict.fromkeys(names)
        self.well = True
        """Whether each that was answered is cancelled."""
        self.done = asyncio.Event()
        self._form = form

    def take(self, answer: AnyAnswer) -> None:
        name = answer.tenant, answer.id
        # What else is heard of the job was said before it was to be cancelled.
        if name not in self.open or not isinstance(answer, Cancelling | Refused | Ended):
            return
        self.well &= says_cancelled(answer)
        print_answer(answer, self._form)
        self._close(name)

    def give_up(self, name: SubmissionName, why: str) -> None:
        """Takes that one could not be stored."""
        fail(f"{'/'.join(name)}: {why}")
        self.well = False
        self._close(name)

    def _close(self, name: SubmissionName) -> None:
        self.open.pop(name, None)
        if not self.open:
            self.done.set()


async def cancel_all(nats: str | None, drafts: Sequence[Draft], *, form: Format) -> int:
    """Publish all cancellations of a tenant, and say what is answered within a moment.

    Returns:
        The exit code: 0 only if each job is being cancelled, or was; 3 where nobody answers, and none is known to have failed.
    """
    messages = [pack(draft) for draft in drafts]
    answers = _Answers([message.name for message in messages], form)
    async with (
        connected(nats) as bus,
        hearing_answers(bus, drafts[0].tenant, answers.take, lambda: sorted(answers.open)),
    ):
        await publish_all(bus, messages, failed=answers.give_up)
        await happens(answers.done, within=SOON_SECONDS)
    for tenant, job in answers.open:
        fail(
            f"{tenant}/{job}: nobody answers yet; it is cancelled as soon as the cluster's admitter is there"
        )
    if answers.well and answers.open:
        return NotRunningError.exit_code
    return 0 if answers.well else 1
