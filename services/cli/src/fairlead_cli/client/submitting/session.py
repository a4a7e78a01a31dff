"""`fairlead submit`: publish, then say each step until the last job has ended."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

from fairlead_bus import Bucket, Bus, BusError
from fairlead_cli.client.connection import connected
from fairlead_cli.client.phrases import listed
from fairlead_cli.client.submitting.answers import hearing_answers
from fairlead_cli.client.submitting.following import Following, SubmissionName, SubmissionTally, answer_line
from fairlead_cli.client.submitting.publishing import SubmissionMessage, pack, publish_all
from fairlead_cli.client.submitting.reading import Draft
from fairlead_cli.console import fail, say, warn, write_line
from fairlead_cli.errors import NotRunningError
from fairlead_cli.options import Format
from fairlead_cli.printing import print_stream
from fairlead_cli.signals import happens
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.submissions import Accepted, AnyAnswer, Cancelling, Ended, Refused

if TYPE_CHECKING:
    from fairlead_contracts.policyfile.document import PolicyDocument

SOON_SECONDS = 5.0
"""Seconds for which whoever does not follow jobs hears whether they are taken up: a refusal mostly comes
within a tenth of it."""


class Session:
    """A run of `fairlead submit`.

    Args:
        tell: hears of each answer that is news.
    """

    def __init__(self, messages: Sequence[SubmissionMessage], *, tell: Callable[[AnyAnswer], None]) -> None:
        self._messages = messages
        self._tell = tell
        self._done = asyncio.Event()
        self._answered = asyncio.Event()
        self.strangers: set[str] = set()
        """Tenants that were refused as such."""
        self.following = Following(message.name for message in messages)

    async def publish(self, bus: Bus, *, listen_seconds: float | None = None) -> list[SubmissionName]:
        """Publish, and tell every step of every job until each has ended or was refused; returns those that are stored.

        Where seconds are given, it only hears for so long whether each is taken up or refused.
        """
        tenants = {message.name[0] for message in self._messages}
        only = tenants.pop() if len(tenants) == 1 else None
        async with hearing_answers(bus, only, self._take, lambda: self.following.names_open):
            stored = await publish_all(bus, self._messages, failed=self._give_up)
            self._check_done()
            if listen_seconds is None:
                await self._done.wait()
            else:
                await happens(self._answered, within=listen_seconds)
        return stored

    def _give_up(self, name: SubmissionName, why: str) -> None:
        fail(f"{'/'.join(name)}: {why}")
        self.following.give_up(name)

    def _take(self, answer: AnyAnswer) -> None:
        if self.following.take(answer):
            if isinstance(answer, Refused) and answer.field == "tenant":
                self.strangers.add(answer.tenant)
            self._tell(answer)
            self._check_done()

    def _check_done(self) -> None:
        if not self.following.unanswered:
            self._answered.set()
        if self.following.done:
            self._done.set()


async def submit_all(
    nats: str | None, drafts: Sequence[Draft], *, follow: bool, quiet: bool, form: Format
) -> int:
    """Publish all jobs, follow them if asked to, and say the sum.

    Returns:
        The exit code: 0 only if all were stored, and where followed accepted and succeeded; 3 where all were stored and nobody
        answered to any.
    """

    def tell(answer: AnyAnswer) -> None:
        if not follow and isinstance(answer, Accepted):
            for warning in answer.warnings:
                warn(f"{answer.tenant}/{answer.id}: {warning}")
        # In words each job has a line of its own at the end; a program is handed what was heard.
        if not follow and form not in ("json", "yaml") and not isinstance(answer, Refused):
            return
        went_wrong = isinstance(answer, Refused) or (
            isinstance(answer, Ended) and answer.outcome != "succeeded"
        )
        if not quiet or went_wrong:
            print_answer(answer, form)

    session = Session([pack(draft) for draft in drafts], tell=tell)
    async with connected(nats) as bus:
        if not follow:
            stored = await session.publish(bus, listen_seconds=SOON_SECONDS)
            meant = await who_is_meant(bus, session.strangers)
            return _told_unfollowed(session.following, stored, form, of=len(drafts), quiet=quiet, meant=meant)
        try:
            await session.publish(bus)
        except asyncio.CancelledError:
            say(session.following.left_in_words())
            raise
        meant = await who_is_meant(bus, session.strangers)
    tally = session.following.tally()
    if len(drafts) > 1 or not tally.well:
        say(tally.words())
    _say_what_next(tally, meant)
    return 0 if tally.well else 1


def _say_what_next(tally: SubmissionTally, meant: Iterable[str]) -> None:
    if told := tally.why_nothing_new_runs():
        say(told)
    for sentence in meant:
        say(sentence)


def _told_unfollowed(
    following: Following,
    stored: Sequence[SubmissionName],
    form: Format,
    *,
    of: int,
    quiet: bool,
    meant: Iterable[str],
) -> int:
    """Report how many of the jobs were stored, and their first answers. Returns the exit code."""
    taken = [name for name in stored if not following.is_refused(name)]
    for name in taken if not (quiet or form in ("json", "yaml")) else []:
        told = ": known already" if following.is_known(name) else ": published"
        write_line("/".join(name) + ("" if form == "name" else told))
    say(_published_in_words(following, stored=len(stored), of=of))
    _say_what_next(following.tally(), meant)
    if stored and following.unanswered == len(stored) == of:
        return NotRunningError.exit_code
    return 0 if len(stored) == of and not following.tally().refused else 1


def _published_in_words(following: Following, *, stored: int, of: int) -> str:
    """A line on how many jobs are stored, and what became of them within a moment."""
    tally = following.tally()
    parts = [f"{stored} of {of} published"]
    parts += tally.taken_in_words() if tally.accepted or tally.known else []
    parts += [f"{tally.refused} refused"] if tally.refused else []
    told = ", ".join(parts)
    if not following.unanswered:
        return told
    if following.unanswered == stored:
        told = f"{told}, but nobody answers"
    return (
        f"{told}; {following.unanswered} not taken up yet: "
        "submit the same ids again without --no-follow to hear what becomes of them"
    )


def print_answer(answer: AnyAnswer, form: Format) -> None:
    """Print an answer in this form."""
    match form:
        case "json" | "yaml":
            print_stream([msgspec.json.decode(to_json(answer))], form)
        case "name":
            if isinstance(answer, Accepted | Cancelling):
                write_line(f"{answer.tenant}/{answer.id}")
        case _:
            write_line(answer_line(answer))


async def who_is_meant(bus: Bus, strangers: Collection[str]) -> list[str]:
    """A sentence on each of them with tenants of the policy; none where there are none, or we may not read it."""
    if not strangers:
        return []
    from fairlead_contracts.policyfile.read import decode_document  # only who needs it waits for it

    try:
        found = await Bucket(bus, topology.POLICY).newest_readable(subjects.DOCUMENT_KEY, decode_document)
    except BusError:
        return []
    return [] if found.value is None else list(_who_is_known(found.value, sorted(strangers)))


def _who_is_known(policy: "PolicyDocument", strangers: Collection[str]) -> Iterator[str]:
    parents = {tenant.parent for tenant in policy.tenants}
    known = [tenant.name for tenant in policy.tenants if tenant.name not in parents]
    names = listed(known)
    for stranger in (one for one in strangers if known and one not in known):
        near = get_close_matches(stranger, known, 1)
        if near:
            yield f"tenant {stranger}: did you mean {near[0]}? The policy names {names}"
        else:
            yield f"tenant {stranger}: the policy names {names}"
