"""Nodes, partitions, accounts and settings, as `scontrol --oneliner` prints them: `Key=Value` words on a line."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_slurm.quantities import duration, gres, instant, tres

_WORD = re.compile(r"(?:^|\s)([A-Za-z/]+(?:\[\d+\])?)=")
_SETTING = re.compile(r"^(\S+)\s*= ?(.*)$")
_WEIGHT = "PriorityWeight"
_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "UNKNOWN", "FUTURE", "POWERING_DOWN", "INVAL", "NOT_RESPONDING")
_ROOT = "root"
_THOUSANDTHS = 1000
_ENDED_KEPT = 300 * SECOND
BACKUP_CONTROLLER = "SlurmctldHost[1]"
"""Key of slurm.conf, as slurmctld prints it, of the host that takes over first."""
_HOOKS = (
    "PrologSlurmctld",
    "EpilogSlurmctld",
    "Epilog",
    "JobSubmitPlugins",
    "PrologEpilogTimeout",
    "BatchStartTimeout",
    "KillWait",
    "RequeueExit",
    "Prolog",
    "PrologFlags",
    "PreemptMode",
    BACKUP_CONTROLLER,
)
_NOTHING = ("", "(null)", "NONE", "none", "ALL")


class SlurmNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, as Slurm is configured to have it."""

    name: str
    partitions: tuple[str, ...]
    resources: dict[str, int]
    """Configured amounts by Slurm's names: all that accounting tracks, and each GRES as `gres/<name>`."""
    usable: bool
    """Whether jobs may start on it."""
    features: tuple[str, ...]
    gres: dict[str, int]
    """Number of each GRES, by name as `gpu` and by type as `gpu:h100`, whether or not accounting tracks
    it."""


class SlurmPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition."""

    name: str
    tier: int
    """PriorityTier: jobs of a higher one go first, whatever their priority."""
    is_default: bool
    state: str
    """State: `UP`, or `DOWN`, which takes jobs and starts none, or `DRAIN`, which starts those that it has and takes none,
    or `INACTIVE`, which does neither."""
    max_time: Micros | None
    """The longest time limit of a job; None for no bound."""
    allowed_accounts: tuple[str, ...]
    """Accounts whose jobs alone may run here; empty for all."""
    denied_accounts: tuple[str, ...]
    """Accounts whose jobs may not, where none is allowed by name."""
    allowed_qos: tuple[str, ...] = ()
    """QOS whose jobs alone may run here; empty for all."""
    denied_qos: tuple[str, ...] = ()
    qos: str = ""
    """The QOS whose limits hold for all jobs of the partition; empty for none."""

    @property
    def up(self) -> bool:
        """Whether it starts jobs."""
        return self.state in ("UP", "DRAIN")

    def excludes(self, account: str, qos: str) -> bool:
        """Whether its lists, read as those of names alone, keep jobs of this account or QOS out."""
        return _is_out(account, self.allowed_accounts, self.denied_accounts) or _is_out(
            qos, self.allowed_qos, self.denied_qos
        )


class Licence(msgspec.Struct, frozen=True, kw_only=True):
    """A licence, with how many of it there are and are used now."""

    name: str
    """The licence's name, followed by `@` and its server where it is accounting's."""
    total: int
    used: int
    reserved: int = 0
    """The number that reservations hold."""


class NodeReservation(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation of nodes, now or later."""

    name: str
    nodes: str
    """Nodes that it keeps, as Slurm writes a list of them."""
    begins: Micros | None
    ends: Micros | None


class SlurmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings in slurm.conf that steering depends on."""

    cluster: str
    version: str
    priority_type: str
    weights: dict[str, int]
    """PriorityWeight* that are not 0, by what follows that word, as `Age`; resources as `TRES/cpu`."""
    priority_flags: tuple[str, ...] = ()
    """PriorityFlags, in words."""
    preempt_type: str
    slurm_user: str
    """The Unix user whom slurmctld runs as, who may do everything, as root may."""
    scheduler_type: str
    scheduler: dict[str, str]
    """SchedulerParameters by name; empty for one that is a word alone."""
    enforced: tuple[str, ...]
    """AccountingStorageEnforce, in words."""
    ended_kept: Micros = _ENDED_KEPT
    """MinJobAge: slurmctld forgets a job so long after its end."""
    array_size: int | None = None
    """MaxArraySize; None where it is not told."""
    has_accounting: bool
    """Whether there is a slurmdbd."""
    hooks: dict[str, str] = {}
    """Settings that jobs which run as pods depend on, by key, as slurmctld prints them."""

    @property
    def enforces_associations(self) -> bool:
        """Whether a job may only name an account that accounting knows: limits and QOS imply it."""
        return bool({"associations", "limits", "qos", "safe", "all"} & set(self.enforced))

    @property
    def nests_accounts(self) -> bool:
        """Whether a partition's lists of accounts hold for those below, too: from 23.02 on (partition_mgr.c)."""
        return not self.version.startswith("22.05.")

    @property
    def unbounded_by(self) -> list[str]:
        """Flags by which Slurm does not normalize a factor, so that the factor may exceed its weight (slurm.conf)."""
        return [flag for flag in self.priority_flags if flag.startswith("NO_NORMAL")]

    @property
    def own_priority(self) -> int:
        """The most that Slurm's own factors can add up to: each factor is at most 1."""
        return sum(self.weights.values())


def nodes(text: str) -> list[SlurmNode]:
    """The nodes of `scontrol show node`."""
    return [
        SlurmNode(
            name=words["NodeName"],
            partitions=_list(words.get("Partitions", "")),
            resources=untracked(gres(words.get("Gres", ""))) | tres(words.get("CfgTRES", "")),
            usable=is_usable(words.get("State", "UNKNOWN")),
            features=_list(words.get("ActiveFeatures", "")),
            gres=gres(words.get("Gres", "")),
        )
        for words in lines_with(text, "NodeName")
    ]


def partitions(text: str) -> list[SlurmPartition]:
    """The partitions of `scontrol show partition`."""
    return [
        SlurmPartition(
            name=words["PartitionName"],
            tier=int(words.get("PriorityTier", "1")),
            is_default=words.get("Default") == "YES",
            state=words.get("State", ""),
            max_time=duration(words.get("MaxTime", "")),
            allowed_accounts=_named(words.get("AllowAccounts", "")),
            denied_accounts=_named(words.get("DenyAccounts", "")),
            allowed_qos=_named(words.get("AllowQos", "")),
            denied_qos=_named(words.get("DenyQos", "")),
            qos=words.get("QoS", "").replace("N/A", ""),
        )
        for words in lines_with(text, "PartitionName")
    ]


def licences(text: str) -> list[Licence]:
    """The licences of `scontrol --oneliner show licenses`."""
    return [
        Licence(
            name=words["LicenseName"],
            total=int(words["Total"]),
            used=int(words["Used"]),
            reserved=int(words.get("Reserved", "0")),
        )
        for words in lines_with(text, "LicenseName")
    ]


def reservations(text: str) -> list[NodeReservation]:
    """The reservations of `scontrol --oneliner show reservation` that have nodes: one of licences alone has none."""
    return [
        NodeReservation(
            name=words["ReservationName"],
            nodes=words["Nodes"],
            begins=instant(words.get("StartTime", "")),
            ends=instant(words.get("EndTime", "")),
        )
        for words in lines_with(text, "ReservationName")
        if words.get("Nodes", "(null)") not in ("", "(null)")
    ]


def accounts(text: str) -> list[str]:
    """The accounts of `scontrol show assoc_mgr flags=assoc` below the root; empty where there is no accounting."""
    return [
        words["Account"]
        for words in lines_with(text, "ClusterName")
        if not words.get("UserName") and words.get("Account", _ROOT) != _ROOT and "ParentAccount" in words
    ]


def settings(text: str) -> SlurmSettings:
    """The settings of `scontrol show config`."""
    found = {match[1]: match[2].strip() for line in text.splitlines() if (match := _SETTING.match(line))}
    return SlurmSettings(
        cluster=found.get("ClusterName", ""),
        version=found.get("SLURM_VERSION", ""),
        priority_type=found.get("PriorityType", ""),
        weights=_weights(found),
        priority_flags=_named(found.get("PriorityFlags", "")),
        preempt_type=found.get("PreemptType", ""),
        slurm_user=found.get("SlurmUser", "").partition("(")[0],
        scheduler_type=found.get("SchedulerType", ""),
        scheduler=_parameters(found.get("SchedulerParameters", "")),
        enforced=_named(found.get("AccountingStorageEnforce", "")),
        ended_kept=_number(found.get("MinJobAge", "").partition(" ")[0]) * SECOND or _ENDED_KEPT,
        array_size=_number(found.get("MaxArraySize", "")) or None,
        has_accounting=found.get("AccountingStorageType", "").endswith("/slurmdbd"),
        hooks={key: found[key] for key in _HOOKS if key in found},
    )


def is_usable(state: str) -> bool:
    """Whether jobs may start on a node of this state, as `MIXED+DRAIN`. One that saves power is started for its job."""
    return not any(word in state.replace("POWERED_DOWN", "") for word in _UNUSABLE)


def _is_out(name: str, allowed: tuple[str, ...], denied: tuple[str, ...]) -> bool:
    return name not in allowed if allowed else name in denied


def _parameters(text: str) -> dict[str, str]:
    parts = (part.partition("=") for part in _named(text))
    return {name.strip().lower(): value.strip() for name, _, value in parts}


def untracked(counts: Mapping[str, int]) -> dict[str, int]:
    """A node's GRES as resources, which CfgTRES leaves out unless AccountingStorageTRES names them."""
    return {f"gres/{name}": _THOUSANDTHS * count for name, count in counts.items()}


def _weights(found: Mapping[str, str]) -> dict[str, int]:
    weights = {}
    for name, value in found.items():
        if not name.startswith(_WEIGHT):
            continue
        factor = name.removeprefix(_WEIGHT)
        for part in value.split(","):
            resource, equals, amount = part.partition("=")
            weight = _number(amount if equals else part)
            if weight > 0:
                weights[f"{factor}/{resource}" if equals else factor] = weight
    return weights


def lines_with(text: str, key: str) -> Iterator[dict[str, str]]:
    """The lines that have a word of this key, each as its words by key."""
    for line in text.splitlines():
        marks = list(_WORD.finditer(line))
        # A value may hold blanks: it goes on until the next `Key=`.
        ends = [*(mark.start() for mark in marks[1:]), len(line)][: len(marks)]
        words = {mark[1]: line[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}
        if key in words:
            yield words


def _list(text: str) -> tuple[str, ...]:
    return () if text in ("", "(null)") else tuple(text.split(","))


def _named(text: str) -> tuple[str, ...]:
    """A list like `_list`'s, where some words stand for an empty one."""
    return () if text in _NOTHING else tuple(text.split(","))


def _number(text: str) -> int:
    whole = text.partition(".")[0]
    return int(whole) if whole.isdecimal() else 0
