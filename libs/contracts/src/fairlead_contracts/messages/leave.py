"""An operator's leave to steer a cluster: given by the command that looks it over, without it nothing is written there.

Stored in the `policy` bucket under `clearance.<cluster>`, the first release's word for leave. A simulated cluster needs none. Beside it, under
`lever.<cluster>`, stands what the cluster's admitter found since: the leave names a lever, and a frontend that was
restarted may obey another.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.instants import Moment

type LeverName = Literal["boost", "priority", "site-factor"]
"""The field that levels are written into: for Kueue the annotation `kueue.x-k8s.io/priority-boost`, or
`spec.priority`; for Slurm SiteFactor."""


class LeverWords(msgspec.Struct, frozen=True, kw_only=True):
    """Words that people are told of a lever: its frontend's own."""

    leave_command: str
    """The command that gives leave to write by it, as it is typed; `{cluster}` stands for the cluster."""
    ceased: str = ""
    """The sentence on a cluster that no longer obeys it, `{cluster}`, since it was seen, `{at}`; empty where it always
    counts."""


_DOCTOR = "`fairlead doctor --cluster {cluster} --give-leave`"

LEVERS: Mapping[LeverName, LeverWords] = {
    # A boost counts where the feature gate is on, and Kueue may be restarted without it at any time.
    "boost": LeverWords(
        leave_command=_DOCTOR,
        ceased="Kueue on {cluster} no longer reads boosts (seen {at:%Y-%m-%d %H:%M} UTC), and leave was "
        "given for these: turn its feature gate PriorityBoost on again, or run `fairlead doctor`, which gives leave "
        "for the lever that it finds. The boosts that stood are taken away",
    ),
    "priority": LeverWords(leave_command=_DOCTOR),
    "site-factor": LeverWords(leave_command="`fairlead slurm check --cluster {cluster}`"),
}


class LeverFound(Message, frozen=True, kw_only=True):
    """The lever that a cluster was last found to obey. A leave that was given later knows better."""

    cluster: str
    lever: LeverName
    """`boost` where both are obeyed."""
    at: Moment
    evidence: str = ""
    """Observation that shows it, for people."""


class Leave(Message, frozen=True, kw_only=True):
    """An operator's leave to steer a cluster, with what was found of it."""

    cluster: str
    lever: LeverName
    at: Moment
    by: str = ""
    accepted: list[str] = []
    """The findings that stand against it and were accepted, by name."""
    replaced: LeverName | None = None
    """The lever of the leave before this one, where it was another: what was written by it is taken away
    first."""

    def why_ineffective(self, found: LeverFound | None) -> str:
        """The reason for which its lever would change nothing, in words; empty where it counts, or unknown."""
        ceased = LEVERS[self.lever].ceased
        if found is None or found.at <= self.at or found.lever == self.lever:
            return ""
        return ceased.format(cluster=self.cluster, at=found.at)


class Revocation(Message, frozen=True, kw_only=True):
    """A word that leave to steer a cluster was taken back, as long as none is given again: levels that stand are taken away.

    Stored under `revocation.<cluster>`. A leave that is merely gone is none: it may have been lost, and without leave
    nothing is written, not even a level taken away.
    """

    cluster: str
    lever: LeverName
    """Lever by which the levels were written."""
    at: Moment
    by: str = ""

    @property
    def given_again_by(self) -> str:
        """The command that gives leave again, as it is typed."""
        return LEVERS[self.lever].leave_command.format(cluster=self.cluster)


REVOCATION: Codec[Revocation] = Codec(Revocation, "revocation", packed=False)

LEAVE: Codec[Leave] = Codec(Leave, "clearance", packed=False)

LEVER_FOUND: Codec[LeverFound] = Codec(LeverFound, "lever found", packed=False)
