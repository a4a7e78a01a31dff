"""The values of a mirror, and what is remembered of their messages, to tell what is new from what is old or comes again."""

from collections.abc import Callable, Mapping

from fairlead_bus.connection.bus import RESTATED, STAMP
from fairlead_bus.streams.tombstones import RevisionStamp, Tombstone, Tombstones
from fairlead_contracts.base.observer import LibraryObserver

REMEMBERED_DELETES = 32_768
"""Deletes that a mirror remembers: until an owner has put its state right, a server may bring deleted objects back."""


class MirroredValues[T]:
    """The last value of each subject, and which of them changed since the last take.

    Args:
        stamp: tells which of two values of a subject is the newer; None where writers do not say so.
    """

    def __init__(self, stamp: Callable[[T], RevisionStamp] | None, observer: LibraryObserver) -> None:
        self._stamp = stamp
        self._observer = observer
        self._fingerprints: dict[str, int] = {}
        self._tombstones = Tombstones(REMEMBERED_DELETES)
        self.by_subject: dict[str, T] = {}
        self.changed: dict[str, T | None] = {}
        """Values changed since the last take, by subject; None for deleted."""

    def take(self) -> dict[str, T | None]:
        """Takes the changes since the last take."""
        changed, self.changed = self.changed, {}
        return changed

    def fingerprint_of(self, subject: str) -> int | None:
        """The fingerprint of the last readable message of a subject that has a value: mostly the one it was read from."""
        return self._fingerprints.get(subject)

    def put(self, subject: str, value: T, *, seq: int, fingerprint: int, restated: bool) -> bool:
        """Puts a value in its place, and returns True; where something newer is known of the object, leaves that."""
        if self._stamp is not None and self._is_old(subject, self._stamp(value), seq, restated=restated):
            if subject in self._fingerprints:
                self._fingerprints[subject] = fingerprint  # the next replay shows it again
            return False
        self._fingerprints[subject] = fingerprint
        self.by_subject[subject] = value
        self.changed[subject] = value
        return True

    def delete(self, subject: str, headers: Mapping[str, str], seq: int) -> None:
        """Drops a value that was deleted, and remembers its delete by the newest stamp that is known of the object."""
        before = self._tombstones.of(subject)
        epoch, _, rev = headers.get(STAMP, "").partition(".")
        known: list[RevisionStamp | None] = []
        if epoch.isdecimal() and rev.isdecimal():
            known.append((int(epoch), int(rev)))
        if RESTATED not in headers:  # else what was known may be a stamp that its owner never gave
            known += [self._stamp_of(subject), before.stamp if before else None]
        self.drop(subject)
        if self._stamp is None:
            return
        stamp = max((one for one in known if one is not None), default=None)
        if forgotten := self._tombstones.bury(subject, Tombstone(stamp, seq)):
            self._observer.count("mirror.forgotten_deletes", forgotten)

    def drop(self, subject: str) -> None:
        """Drops a value, if there is one, without a tombstone."""
        self._fingerprints.pop(subject, None)
        if self.by_subject.pop(subject, None) is not None:
            self.changed[subject] = None

    def forget_messages(self) -> None:
        """Forgets what was remembered of messages, as of a stream that begins again. The values stay until the replay."""
        self._fingerprints.clear()
        self._tombstones.clear()
        # The replay tells what stands by now, or that it stands no more.
        self.changed = {subject: None for subject, value in self.changed.items() if value is None}

    def _stamp_of(self, subject: str) -> RevisionStamp | None:
        """The stamp of the value that stands; None where there is none, and of a stream that was made anew."""
        return (
            self._stamp(self.by_subject[subject]) if self._stamp and subject in self._fingerprints else None
        )

    def _is_old(self, subject: str, stamp: RevisionStamp, seq: int, *, restated: bool) -> bool:
        """Whether something newer is known of the object, by a stamp that its owner stands by."""
        known = self._stamp_of(subject)
        if known is not None and stamp < known:
            if not restated:
                self._observer.count("mirror.stale")
            return not restated
        if not self._tombstones or subject not in self._tombstones:
            return False
        if not restated and self._is_zombie(subject, stamp, seq):
            self._observer.count("mirror.zombies")
            return True
        self._tombstones.forget(subject)
        return False

    def _is_zombie(self, subject: str, stamp: RevisionStamp, seq: int) -> bool:
        """Whether a deleted object comes back: after a server crash under its old sequence, as a late duplicate under a new one.

        The stamp tells both, where it is known; one that was overwritten before it got here is not.
        """
        tombstone = self._tombstones.of(subject)
        return tombstone is not None and (
            stamp <= tombstone.stamp if tombstone.stamp is not None else seq < tombstone.seq
        )
