"""The history of the policy: the revisions that its bucket keeps, and the way back to one.

What operators said meanwhile of writing levels (`pause`, `resume`, `release`) stands in the same bucket, and is told among them.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from fairlead_bus import Stored, is_deletion
from fairlead_cli.client import controls
from fairlead_cli.client.connection import connected
from fairlead_cli.errors import CommandError, NoPolicyError
from fairlead_cli.options import Format
from fairlead_cli.outcomes import PolicyPut
from fairlead_cli.policy.applying import ApplyTerms, apply_file, first_lines
from fairlead_cli.policy.approvals import apart_from_approvals, changes_in_words
from fairlead_cli.policy.files import PolicyFile
from fairlead_cli.policy.job_names import NOBODY, JobNames, names_in
from fairlead_cli.policy.store import Revision, in_force, revisions
from fairlead_cli.printing import is_for_people, print_names, print_outcome, print_sentence, print_stream
from fairlead_cli.published import published
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.control import Mode

_MOST_LINES = 8
"""Lines of one revision's changes that are told; the rest is counted."""


class OperatorWord(msgspec.Struct, frozen=True, kw_only=True):
    """A word of an operator on writing levels."""

    revision: int
    """Revision of the bucket: policies and words are numbered together."""
    since: datetime
    by: str
    why: str
    pool: str | None
    """The pool that it is on; None for all of them."""
    mode: Mode | None
    """The mode that was set; None where the word was taken back."""


async def print_history(nats: str | None, *, form: Format) -> None:
    """Print each revision that is kept, the one in force last, and what operators said meanwhile, all by time.

    Raises:
        NoPolicyError: there is none.
    """
    async with connected(nats) as bus:
        known = await revisions(bus)
        followed = (await in_force(bus)).followed
        words = [_word(pool, stored) for pool, stored in await controls.said(bus)]
        policies = [one.policy for one in reversed(known)]
        names = await names_in(bus, policies) if is_for_people(form) else NOBODY
    if not known:
        raise NoPolicyError
    match form:
        case "json" | "yaml":
            print_stream((published(one) for one in _by_time(known, words)), form)
        case "name":
            print_names(str(one.revision) for one in known)
        case _:
            print_names(_in_words(known, words, followed, names))


async def put_back(
    nats: str | None, revision: int | None, *, exact: bool = False, by: str = "", form: Format = "table"
) -> None:
    """Put an earlier revision in force again, as a new one: what came between stays in the history.

    Args:
        nats: address of NATS; None for that of the running instance.
        revision: the one to go back to; unless given, the one before the last, or the one that services go by where the
            last does not validate.
        exact: whether grants to single jobs are put back, too; else they stay as they are now.

    Raises:
        CommandError: that revision is not kept, or this release does not read it.
        OvertakenError: somebody changed the policy just now.
    """
    async with connected(nats) as bus:
        known, standing = await revisions(bus), await in_force(bus)
        broken = standing.why_not_last is not None
        found = _chosen(
            known, standing.followed if broken and not revision and standing.followed else revision
        )
        if found.policy is None:
            raise CommandError(f"revision {found.revision} does not validate: {found.problem}")
        # Made from itself: of no grant to a single job it says anything new.
        file = PolicyFile(name=f"revision {found.revision}", policy=found.policy, revision=found.revision)
        terms = ApplyTerms(onto=known[-1].revision, exact=exact, by=by, force=broken)
        applied = await apply_file(bus, file, terms)
    other = _last_other(known) if revision is None else None
    for line in (*applied.notes, *_told_of_return(applied, found.revision, other, exact=exact)):
        print_sentence(line, form)
    print_outcome(applied, [str(applied.revision)], form)


def _told_of_return(applied: PolicyPut, back_to: int, other: int | None, *, exact: bool) -> Iterator[str]:
    """Lines on what came of going back to a revision; `other` is the last one that says something else."""
    if applied.written:
        yield f"policy revision {applied.revision}: what was revision {back_to} is in force again"
        return
    yield f"nothing was changed: policy revision {applied.revision}, in force now, says what {back_to} said"
    if other is not None:
        yield f"The last revision that says something else is {other}: `fairlead policy revert {other}` puts it back."
    if not exact and back_to != applied.revision:
        yield "Approvals of single jobs stay as they are now; --exact puts back those of that revision, too."


def _chosen(known: Sequence[Revision], revision: int | None) -> Revision:
    if not known:
        raise CommandError("there is no policy yet")
    if revision is None and len(known) == 1:
        raise CommandError(f"there is no revision before {known[0].revision}")
    wanted = known[-2].revision if revision is None else revision
    for one in known:
        if one.revision == wanted:
            return one
    kept = ", ".join(str(one.revision) for one in known)
    raise CommandError(f"revision {wanted} of the policy is not kept", hint=f"These are: {kept}.")


def _last_other(known: Sequence[Revision]) -> int | None:
    """The last revision that says something else than the last one, beside grants to single jobs."""
    now = apart_from_approvals(known[-1].policy)
    others = (
        one.revision for one in reversed(known) if one.policy and apart_from_approvals(one.policy) != now
    )
    return next(others, None)


def _word(pool: str | None, stored: Stored) -> OperatorWord:
    since = to_datetime(stored.at)
    if is_deletion(stored.headers):
        return OperatorWord(revision=stored.seq, since=since, by="", why="", pool=pool, mode=None)
    found = controls.read_control(stored)
    return OperatorWord(
        revision=stored.seq, since=since, by=found.by, why=found.why, pool=pool, mode=found.mode
    )


def _by_time(known: Sequence[Revision], words: Sequence[OperatorWord]) -> list[Revision | OperatorWord]:
    both: list[Revision | OperatorWord] = [*known, *words]
    return sorted(both, key=lambda one: one.revision)


def _in_words(
    known: Sequence[Revision], words: Sequence[OperatorWord], followed: int, names: JobNames
) -> Iterator[str]:
    """Lines of the history: a headline for each revision, and under it the changes from the last one that validates."""
    before: Revision | None = None
    for one in _by_time(known, words):
        if isinstance(one, OperatorWord):
            yield _word_in_words(one)
            continue
        by = f", by {one.by}" if one.by else ""
        mark = ", in force" if one.revision == followed else ""
        yield f"revision {one.revision}, since {_when(one.since)}{by}{mark}"
        if one.policy is None:
            yield f"  does not validate: {one.problem}"
            continue
        if before is not None and before.policy is not None:
            changes = list(changes_in_words(before.policy, one.policy, names))
            yield from (f"  {line}" for line in first_lines(changes, most=_MOST_LINES))
        before = one


def _word_in_words(word: OperatorWord) -> str:
    pools = "all pools" if word.pool is None else f"pool {word.pool}"
    # Words are only ever taken back where they were said of a pool that turned out not to exist.
    said = "taken back at once, as there is no such pool" if word.mode is None else word.mode.value
    by = f", by {word.by}" if word.by else ""
    why = f": {word.why}" if word.why else ""
    return f"{pools}: {said}, since {_when(word.since)}{by}{why}"


def _when(instant: datetime) -> str:
    """An instant to the second: for people, who look for a day and an hour."""
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
