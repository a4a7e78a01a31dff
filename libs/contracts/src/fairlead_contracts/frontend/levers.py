"""Levers of frontends: the fields that they read a level from, and what people are told of each."""

from collections.abc import Mapping

import msgspec


class LeverWords(msgspec.Struct, frozen=True, kw_only=True):
    """Words that people are told of a lever: its frontend's own."""

    leave_command: str
    """The command that gives leave to write by it, as it is typed; `{cluster}` stands for the cluster."""
    ceased: str = ""
    """The sentence on a cluster that no longer obeys it, `{cluster}`, since it was seen, `{at}`; empty where it always
    counts."""


_DOCTOR = "`fairlead doctor --cluster {cluster} --give-leave`"

LEVERS: Mapping[str, LeverWords] = {
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
"""The levers by the names that a leave has for them (`LeverName`)."""
