"""Newcomers: jobs that came so lately that no decision can have ordered them yet.

The facts are always a little ahead of the decisions. A job that is in the facts and among no heads stands, as far as a
plan can tell, behind the window; had its frontend's tie put it before the window's last, the window would be lifted
over it. Where ties within one second are UIDs, of jobs that arrive together every other one would cost such a write, only
to be in the window itself a moment later. So nothing is lifted over a newcomer.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.snapshot.stated_jobs import JobChange

NEW_SECONDS = 1.0
"""A job that no decision has ordered after this long is not among the heads. Far above a reaction, and a burst of arrivals
stands by ties alone for so long at most."""

type ShardOf = Callable[[JobState], int]
"""The shard whose decision orders a job."""


class _Seen(msgspec.Struct, frozen=True):
    job: JobState
    shard: int
    state_seq: int
    at: float


class Newcomers:
    """The jobs that began to wait within the last moments, by the shard that will order them."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._shards: dict[int, dict[str, _Seen]] = {}
        """Newcomers by shard: of each the newest stands last, and few of them are newer than its decision."""

    def note(self, changes: Iterable[JobChange], state_seq: int, at: float, shard_of: ShardOf) -> None:
        """Take note of what happened to jobs.

        Args:
            changes: the jobs' changes at one look.
            state_seq: sequence of the state stream up to which the look saw everything.
            at: monotonic seconds of the look.
        """
        self.forget_old(at)
        for change in changes:
            before, after = change.before, change.after
            waited = before is not None and before.phase is Phase.WAITING
            if after is not None and after.phase is Phase.WAITING and not waited:
                self._forget(after.uid)  # the newest stands last
                self._remember(after.uid, _Seen(after, shard_of(after), state_seq, at))
            elif before is not None and (after is None or after.phase is not Phase.WAITING):
                self._forget(before.uid)

    def reshard(self, shard_of: ShardOf) -> None:
        """Another policy holds: jobs are in the shards that this says."""
        seen, self._seen = self._seen, {}
        self._shards.clear()
        for uid, one in seen.items():
            self._remember(uid, msgspec.structs.replace(one, shard=shard_of(one.job)))

    def forget_old(self, at: float) -> None:
        """Forgets newcomers that were seen long before that moment, in monotonic seconds."""
        while self._seen:
            uid, seen = next(iter(self._seen.items()))
            if at - seen.at < NEW_SECONDS:
                return
            self._forget(uid)

    def undecided(self, decided: Sequence[int]) -> set[str]:
        """The uids of those that came after what was decided on.

        Args:
            decided: state-stream sequences that the shards' decisions were made from. Of a shard in which nothing
                happens that is an old one: it says nothing of the others' jobs.
        """
        return {uid for shard, seen in self._shards.items() for uid in _newer(seen, decided[shard])}

    def _remember(self, uid: str, seen: _Seen) -> None:
        self._seen[uid] = seen
        self._shards.setdefault(seen.shard, {})[uid] = seen

    def _forget(self, uid: str) -> None:
        seen = self._seen.pop(uid, None)
        if seen is not None:
            shard = self._shards[seen.shard]
            del shard[uid]
            if not shard:
                del self._shards[seen.shard]


def _newer(seen: dict[str, _Seen], than: int) -> Iterator[str]:
    """The uids of those that came after a state-stream sequence."""
    for uid, one in reversed(seen.items()):
        if one.state_seq <= than:
            return
        yield uid
