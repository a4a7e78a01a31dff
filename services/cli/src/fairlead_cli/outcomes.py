"""Outcomes of commands that look or change something, for programs; people read the same in words."""

from collections.abc import Sequence

import msgspec

from fairlead_contracts.messages.control import Mode

DONE, UNDONE = 0, 1
"""Exit codes of what is as it should be, and of what was only looked at and is not."""


class ControlSaid(msgspec.Struct, frozen=True, kw_only=True):
    """The mode that `pause`, `resume` or `release` set, and where it holds."""

    pool: str | None
    """The pool that it was set for; None for all of them."""
    mode: Mode
    by: str
    why: str
    stricter: Sequence[str]
    """Pools with a stricter word of their own; an empty name stands for all pools."""
    clusters: Sequence[str]
    """Clusters where it holds; none where no scorer answers."""


class ClassGranted(msgspec.Struct, frozen=True, kw_only=True):
    """The class that `approve` granted to a job, or took back."""

    job: str
    uid: str
    job_class: str | None
    """The class that was granted; None where it was taken back."""
    revision: int
    """Revision of the policy that says so."""
    written: bool = True
    """Whether the policy was written: not where the job had this very grant already."""


class PolicyChecked(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `policy check` on a file."""

    file: str
    valid: bool
    tenants: int = 0
    pools: int = 0
    problems: Sequence[str] = ()
    """Reasons for which it is not valid."""
    warnings: Sequence[str] = ()
    """Sentences on what has no effect."""
    notes: Sequence[str] = ()
    """Sentences on what its aging comes to, and what it stands for."""


class PolicyCompared(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `policy diff`: a file against the policy in force."""

    file: str
    revision: int
    """Revision of the policy that is in force."""
    changes: Sequence[str]
    """Keys that differ: `- key: value` as it is, `+ key: value` as it would be."""
    notes: Sequence[str]
    refused: str = ""
    """Reason for which `policy apply` would refuse the file as it is; empty where it would not."""


class PolicyPut(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of `policy apply` or `policy revert`."""

    revision: int
    written: bool
    """Whether it was written: an equal one is left as it stands."""
    notes: Sequence[str]
    """Lines that the person should know."""


class NatsChecked(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `nats check`: faults of a running server."""

    users: int
    faults: Sequence[str]


class NatsProvisioned(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that `nats provision` made; with --dry-run, those that it would make."""

    dry_run: bool
    changes: Sequence[str]
    refused: Sequence[str]


class ClusterRetired(msgspec.Struct, frozen=True, kw_only=True):
    """The leftovers of a cluster that `nats retire` took away; with --dry-run, those that it would."""

    cluster: str
    dry_run: bool
    leftovers: Sequence[str]
