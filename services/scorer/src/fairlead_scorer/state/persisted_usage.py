"""Past use as the owners of shards stated it last, and under which policy. Pure."""

from collections.abc import Iterable

from fairlead_contracts.messages.decisions import Keeping


class PersistedUsage:
    """The last word on each shard.

    Which tenants a shard has depends on the policy. A word on a shard under one policy is none on the same shard under
    another: who hears of decisions before the policy that they were made by lays them by until then.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], Keeping] = {}
        self._from = 0
        """Words under policies before this one count no more."""

    def note(self, keeping: Keeping) -> None:
        """Lays the word by, whatever policy it was said under; but not one from before all was forgotten."""
        if revision_of(keeping) >= self._from:
            self._last[keeping.pool, keeping.shard] = keeping

    def forget(self, revision: int) -> None:
        """Forgets past use, which does not count by this policy: what was said before is nothing to go on from, ever."""
        self._last.clear()
        self._from = revision

    def under(self, pool: str, revision: int) -> list[Keeping]:
        """Words on the pool's shards under this policy."""
        return [keeping for keeping in self._of(pool) if revision_of(keeping) == revision]

    def not_under(self, pool: str, revision: int) -> list[Keeping]:
        """Words on the pool's shards under other policies, the newest policy's last."""
        return sorted(
            (keeping for keeping in self._of(pool) if revision_of(keeping) != revision), key=revision_of
        )

    def _of(self, pool: str) -> Iterable[Keeping]:
        return (one for (name, _), one in self._last.items() if name == pool and one.kept is not None)


def revision_of(keeping: Keeping) -> int:
    """The policy that it was said under; 0 where it says none."""
    return 0 if keeping.basis is None else keeping.basis.policy
