"""Nodes, partitions, accounts and settings, as `scontrol --oneliner` prints them: `Key=Value` words on a line."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from fairlead_slurm.quantities import tres

_WORD = re.compile(r"(?:^|\s)([A-Za-z/]+(?:\[\d+\])?)=")
_SETTING = re.compile(r"^(\S+)\s*= ?(.*)$")
_WEIGHT = "PriorityWeight"
_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "UNKNOWN", "FUTURE", "POWERING_DOWN", "INVAL", "NOT_RESPONDING")
_ROOT = "root"


class SlurmNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    name: str
    partitions: tuple[str, ...]
    resources: dict[str, int]
    """What is configured, by Slurm's names."""
    usable: bool
    """Whether jobs may start on it."""
    features: tuple[str, ...]


class SlurmPartition(msgspec.Struct, frozen=True, kw_only=True):
    """One partition."""

    name: str
    tier: int
    """PriorityTier: jobs of a higher one go first, whatever their priority."""
    is_default: bool
    up: bool
    preempts: bool


class SlurmAccount(msgspec.Struct, frozen=True, kw_only=True):
    """One account of the tree."""

    name: str
    parent: str
    """Empty for one at the top."""
    shares: int


class SlurmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What slurm.conf says that steering depends on."""

    cluster: str
    version: str
    priority_type: str
    weights: dict[str, int]
    """PriorityWeight* that are not 0, by what follows that word, as `Age`; resources as `TRES/cpu`."""
    preempt_type: str

    @property
    def own_priority(self) -> int:
        """The most that Slurm's own factors can add up to: each factor is at most 1."""
        return sum(self.weights.values())


def nodes(text: str) -> list[SlurmNode]:
    """Of `scontrol show node`."""
    return [
        SlurmNode(
            name=words["NodeName"],
            partitions=_list(words.get("Partitions", "")),
            resources=tres(words.get("CfgTRES", "")),
            usable=not any(state in words.get("State", "UNKNOWN") for state in _UNUSABLE),
            features=_list(words.get("ActiveFeatures", "")),
        )
        for words in _lines(text, "NodeName")
    ]


def partitions(text: str) -> list[SlurmPartition]:
    """Of `scontrol show partition`."""
    return [
        SlurmPartition(
            name=words["PartitionName"],
            tier=int(words.get("PriorityTier", "1")),
            is_default=words.get("Default") == "YES",
            up=words.get("State") == "UP",
            preempts=words.get("PreemptMode", "OFF") not in ("OFF", "GANG"),
        )
        for words in _lines(text, "PartitionName")
    ]


def accounts(text: str) -> list[SlurmAccount]:
    """Of `scontrol show assoc_mgr flags=assoc`; empty where there is no accounting."""
    return [
        SlurmAccount(
            name=words["Account"],
            parent=""
            if words["ParentAccount"].startswith(f"{_ROOT}(")
            else words["ParentAccount"].partition("(")[0],
            shares=_number(words.get("SharesRaw/Norm/Level/Factor", "1").partition("/")[0]),
        )
        for words in _lines(text, "ClusterName")
        if not words.get("UserName") and words.get("Account", _ROOT) != _ROOT and "ParentAccount" in words
    ]


def settings(text: str) -> SlurmSettings:
    """Of `scontrol show config`."""
    found = {match[1]: match[2].strip() for line in text.splitlines() if (match := _SETTING.match(line))}
    return SlurmSettings(
        cluster=found.get("ClusterName", ""),
        version=found.get("SLURM_VERSION", ""),
        priority_type=found.get("PriorityType", ""),
        weights=_weights(found),
        preempt_type=found.get("PreemptType", ""),
    )


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


def _lines(text: str, key: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        words = _words(line)
        if key in words:
            yield words


def _words(line: str) -> dict[str, str]:
    """A value may hold blanks: it goes on until the next `Key=`."""
    marks = list(_WORD.finditer(line))
    ends = [*(mark.start() for mark in marks[1:]), len(line)][: len(marks)]
    return {mark[1]: line[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}


def _list(text: str) -> tuple[str, ...]:
    return () if text in ("", "(null)") else tuple(text.split(","))


def _number(text: str) -> int:
    whole = text.partition(".")[0]
    return int(whole) if whole.isdecimal() else 0
