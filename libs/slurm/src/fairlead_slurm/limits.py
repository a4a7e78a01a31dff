"""Limits of accounts, users and QOS, as `scontrol --oneliner show assoc_mgr` prints them. Pure."""

import re

import msgspec

from fairlead_contracts.base.instants import MINUTE, Micros
from fairlead_slurm.cluster import lines_with
from fairlead_slurm.quantities import tres

_USED = re.compile(r"\([^)]*\)")
_UNLIMITED = "N"


class AllowedAmounts(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that an association or QOS sets, with amounts as in `quantities.tres`; an absent one is none."""

    group: dict[str, int] = {}
    """Amounts of all its running jobs together (GrpTRES)."""
    job: dict[str, int] = {}
    """Amounts of each job (MaxTRESPerJob)."""
    node: dict[str, int] = {}
    """Amounts of each job on each node (MaxTRESPerNode)."""
    wall: Micros | None = None
    """Longest time limit of a job (MaxWall)."""
    jobs: int | None = None
    """Largest number of jobs that may stand or run at a time; 0 where there may be none."""


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """An account, or a user in one."""

    account: str
    parent: str
    """The account above; empty at the top, and for users."""
    user: str
    """The user's name; empty for the account itself."""
    is_default: bool
    """Whether this is the account of a user's jobs that name none."""
    limits: AllowedAmounts


class AccountLimits(msgspec.Struct, frozen=True, kw_only=True):
    """All limits that slurmctld tells."""

    associations: tuple[Association, ...] = ()
    qualities: dict[str, AllowedAmounts] = {}
    """Limits by QOS."""


def account_limits(text: str) -> AccountLimits:
    """The limits of `scontrol show assoc_mgr flags=assoc,qos`."""
    return AccountLimits(
        associations=tuple(
            Association(
                account=words.get("Account", ""),
                parent=words.get("ParentAccount", "").partition("(")[0],
                user=words.get("UserName", "").partition("(")[0],
                is_default=words.get("DefAssoc") == "Yes",
                limits=_limits(words),
            )
            for words in lines_with(text, "ClusterName")
        ),
        qualities={words["QOS"].partition("(")[0]: _limits(words) for words in lines_with(text, "QOS")},
    )


def _limits(words: dict[str, str]) -> AllowedAmounts:
    wall = _number(words.get("MaxWallPJ", ""))
    counts = [_number(words.get(key, "")) for key in ("GrpJobs", "GrpSubmitJobs", "MaxJobs", "MaxSubmitJobs")]
    return AllowedAmounts(
        group=_amounts(words.get("GrpTRES", "")),
        job=_amounts(words.get("MaxTRESPJ", "")),
        node=_amounts(words.get("MaxTRESPN", "")),
        wall=None if wall is None else wall * MINUTE,
        jobs=min((count for count in counts if count is not None), default=None),
    )


def _amounts(text: str) -> dict[str, int]:
    """The limits in `cpu=40(3),mem=N(0)`, without what is used."""
    parts = (part for part in _USED.sub("", text).split(",") if not part.endswith(f"={_UNLIMITED}"))
    return tres(",".join(parts))


def _number(text: str) -> int | None:
    found = _USED.sub("", text)
    return int(found) if found.isdecimal() else None
