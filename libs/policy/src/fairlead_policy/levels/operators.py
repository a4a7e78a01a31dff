"""The operators' words in the policy bucket: pause, resume, release, and leave to steer a cluster.

What was found since of the lever that a leave names stands beside it, and is heard with them.
Readers of the bucket give each key that changed, and ask what holds.
"""

from typing import NamedTuple

from fairlead_contracts import subjects, topology
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.messages.control import CONTROL, STRICTNESS, Control, Mode
from fairlead_contracts.messages.leave import (
    LEAVE,
    LEVER_FOUND,
    REVOCATION,
    Leave,
    LeverFound,
    Revocation,
)

_CONTROL = subjects.kv_subject(topology.POLICY, "control.")
_ALL = subjects.kv_subject(topology.POLICY, subjects.control_key(None))
_LEAVE = subjects.kv_subject(topology.POLICY, "clearance.")
_REVOCATION = subjects.kv_subject(topology.POLICY, "revocation.")
_LEVER = subjects.kv_subject(topology.POLICY, "lever.")


class ControlWord(NamedTuple):
    """The operators' word on writing to a pool; active where nobody said one."""

    mode: Mode = Mode.ACTIVE
    said: Control | None = None
    """The word as it was said: who, when and why; None where nobody said one, or it can't be read."""
    of_all: bool = False
    """Whether it was said of all pools."""

    def in_words(self) -> str:
        """The mode with who, when and why, as far as that was said."""
        pools = "all pools are " if self.of_all else ""
        if self.said is None:
            return f"{pools}{self.mode.value} by an operator, in a word that cannot be read"
        return pools + self.said.in_words()

    def ended_in_words(self) -> str:
        """The command that has levels written again, in words: a word on one pool is not ended by one on all."""
        return f"`fairlead resume{'' if self.of_all else ' POOL'}` has them written again"


class OperatorWords:
    """The operators' words that were not taken back."""

    def __init__(self) -> None:
        self._controls: dict[str, ControlWord] = {}
        self._leaves: dict[str, Leave] = {}
        self._levers: dict[str, LeverFound] = {}
        self._revocations: dict[str, Revocation] = {}
        self.unreadable: dict[str, str] = {}
        """Words that can't be read, by subject, and why. They pause, or clear nothing: to stop is never the wrong
        guess."""

    def hear(self, subject: str, payload: bytes | None) -> bool:
        """Take note of what stands at a subject of the bucket now; None where it was taken back.

        Returns:
            Whether the subject holds an operator's word at all.
        """
        if not is_word(subject):
            return False
        for heard in (
            self._controls,
            self._leaves,
            self._levers,
            self._revocations,
            self.unreadable,
        ):
            heard.pop(subject, None)
        if payload is None:
            return True
        of_all = subject == _ALL
        try:
            if subject.startswith(_CONTROL):
                said = CONTROL.decode(payload)
                self._controls[subject] = ControlWord(said.mode, said, of_all)
            elif subject.startswith(_LEVER):
                self._levers[subject] = LEVER_FOUND.decode(payload)
            elif subject.startswith(_REVOCATION):
                self._revocations[subject] = REVOCATION.decode(payload)
            else:
                self._leaves[subject] = LEAVE.decode(payload)
        except ContractError as error:
            self.unreadable[subject] = str(error)
            if subject.startswith(_CONTROL):
                self._controls[subject] = ControlWord(Mode.PAUSED, of_all=of_all)
        return True

    def control(self, pool: str) -> ControlWord:
        """The strictest word on this pool and on all pools; of two alike its own."""
        words = (self._controls.get(subject, ControlWord()) for subject in words_on(pool))
        return max(words, key=lambda word: STRICTNESS.index(word.mode))

    def leave(self, cluster: str) -> Leave | None:
        """The leave to steer the cluster; None where nobody gave it."""
        return self._leaves.get(leave_of(cluster))

    def revocation(self, cluster: str) -> Revocation | None:
        """The word that took the leave to steer the cluster back; None where nobody did, or leave was given again.

        A leave that can't be read is one: somebody meant to give it.
        """
        if self.leave(cluster) is not None or leave_of(cluster) in self.unreadable:
            return None
        return self._revocations.get(revocation_of(cluster))

    def lever_found(self, cluster: str) -> LeverFound | None:
        """The lever that the cluster was last found to obey; None where nobody could tell."""
        return self._levers.get(lever_of(cluster))


def is_word(subject: str) -> bool:
    """Whether an operator's word stands at the subject, or may."""
    return subject.startswith((_CONTROL, _LEAVE, _REVOCATION, _LEVER))


def words_on(pool: str) -> list[str]:
    """The subjects of the words that hold for a pool: its own, and the one for all."""
    keys = (subjects.control_key(pool), subjects.control_key(None))
    return [subjects.kv_subject(topology.POLICY, key) for key in keys]


def leave_of(cluster: str) -> str:
    """The subject of the leave to steer a cluster."""
    return subjects.kv_subject(topology.POLICY, subjects.leave_key(cluster))


def revocation_of(cluster: str) -> str:
    """The subject of the word that the leave was taken back."""
    return subjects.kv_subject(topology.POLICY, subjects.revocation_key(cluster))


def lever_of(cluster: str) -> str:
    """The subject of what was found of a cluster's lever."""
    return subjects.kv_subject(topology.POLICY, subjects.lever_key(cluster))
