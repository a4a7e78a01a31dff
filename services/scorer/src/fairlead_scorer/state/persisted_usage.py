"""Past use as the owners of shards stated it last, and under which policy. Pure."""

from collections.abc import Iterable

from fairlead_contracts.messages.decisions import StatedPastUse


class PersistedUsage:
    """The last statement of past use on each shard.

    Which tenants a shard has depends on the policy. A statement under one policy says nothing of the same shard under
    another. So a decision that comes before its policy is kept here until the policy comes.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], StatedPastUse] = {}
        self._first_policy = 0
        """The first policy whose statements count."""

    def note(self, statement: StatedPastUse) -> None:
        """Keeps a statement of any policy, unless it is from before all was forgotten."""
        if revision_of(statement) >= self._first_policy:
            self._last[statement.pool, statement.shard] = statement

    def forget(self, revision: int) -> None:
        """Forgets all statements, as past use does not count under this policy. No earlier one counts ever again."""
        self._last.clear()
        self._first_policy = revision

    def under(self, pool: str, revision: int) -> list[StatedPastUse]:
        """Statements on the pool's shards under this policy."""
        return [statement for statement in self._of_pool(pool) if revision_of(statement) == revision]

    def not_under(self, pool: str, revision: int) -> list[StatedPastUse]:
        """Statements on the pool's shards under other policies, the newest policy's last."""
        return sorted(
            (statement for statement in self._of_pool(pool) if revision_of(statement) != revision),
            key=revision_of,
        )

    def _of_pool(self, pool: str) -> Iterable[StatedPastUse]:
        return (one for (name, _), one in self._last.items() if name == pool and one.kept is not None)


def revision_of(statement: StatedPastUse) -> int:
    """The policy that a statement was made under; 0 where it names none."""
    return 0 if statement.basis is None else statement.basis.policy
