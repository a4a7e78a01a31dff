"""The names of a snapshot's jobs that are taken: nobody else may have them."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet


class TakenNames:
    """Takes the names of waiting jobs, of many at a time.

    Most snapshots state no uids: a job's id is its uid then, and what is no one's id is no one's uid. So ids are entered
    among the uids only once somebody asks for those, which saves a set of a million names.

    Args:
        ids: of jobs so far, running ones among them; it grows meanwhile.
        uids: of waiting jobs so far; it grows meanwhile, and is whole after `settle`.
        longest: characters that a name may have.
    """

    def __init__(self, ids: set[str], uids: set[str], longest: int) -> None:
        self._ids = ids
        self._uids = uids
        self._longest = longest
        self._owed: list[Sequence[str]] = []
        self._apart = False
        """Whether a uid may be no one's id."""

    def enter(self, ids: Sequence[str], uids: Sequence[str] | None) -> bool:
        """Takes the names of some jobs where all are good and nobody else's; else none of them.

        Args:
            ids: of each.
            uids: of each; None where they are the ids.
        """
        if not self._are_free(ids, self._ids):
            return False
        if uids is not None:
            self._apart = True
        if self._apart:
            self.settle()
            if not self._are_free(uids or ids, self._uids):
                return False
        self._ids.update(ids)
        self._owed.append(uids or ids)
        return True

    def settle(self) -> None:
        """Makes `uids` whole."""
        self._uids.update(*self._owed)
        self._owed.clear()

    def entered(self, name: str, uid: str) -> None:
        """Takes note of names that somebody else entered, after `settle`."""
        self._apart = self._apart or name != uid

    def _are_free(self, names: Sequence[str], taken: AbstractSet[str]) -> bool:
        """Whether they are good, all different, and none of them taken."""
        return (
            all(names)
            and len(max(names, key=len)) <= self._longest
            and "".join(names).isprintable()
            and len(set(names)) == len(names)
            and taken.isdisjoint(names)
        )
