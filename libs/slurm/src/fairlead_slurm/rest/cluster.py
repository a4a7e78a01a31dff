"""Nodes as slurmrestd tells them, and partitions as it did up to v0.0.38. Pure."""

import msgspec

from fairlead_contracts.base.instants import MINUTE
from fairlead_slurm.cluster import SlurmNode, SlurmPartition, is_usable, untracked
from fairlead_slurm.errors import UnreadableError
from fairlead_slurm.quantities import gres, tres
from fairlead_slurm.rest.forms import RestWords, words


class _RestNode(msgspec.Struct, frozen=True):
    name: str
    state: RestWords
    state_flags: list[str] = []
    partitions: list[str] = []
    active_features: RestWords = ""
    gres: str = ""
    tres: str = ""


class _RestNodes(msgspec.Struct, frozen=True):
    nodes: list[_RestNode]


class _RestPartition(msgspec.Struct, frozen=True):
    name: str
    state: str
    flags: list[str] = []
    priority_tier: int = 1
    max_time_limit: int | None = None
    allowed_accounts: str = ""
    denied_accounts: str = ""
    allowed_qos: str = ""
    denied_qos: str = ""
    qos: str = ""


class _RestPartitions(msgspec.Struct, frozen=True):
    partitions: list[_RestPartition]


def nodes_of(document: bytes) -> list[SlurmNode]:
    """The nodes of /nodes.

    Raises:
        UnreadableError: the document is no such one.
    """
    return [
        SlurmNode(
            name=node.name,
            partitions=tuple(node.partitions),
            resources=untracked(gres(node.gres)) | tres(node.tres),
            usable=is_usable("+".join([*words(node.state), *node.state_flags]).upper()),
            features=tuple(words(node.active_features)),
            gres=gres(node.gres),
        )
        for node in _decoded(document, _RestNodes).nodes
    ]


def partitions_of(document: bytes) -> list[SlurmPartition]:
    """The partitions of /partitions.

    Raises:
        UnreadableError: the document is no such one.
    """
    return [
        SlurmPartition(
            name=one.name,
            tier=one.priority_tier,
            is_default="default" in one.flags,
            state=one.state,
            max_time=_limit(one.max_time_limit),
            allowed_accounts=tuple(words(one.allowed_accounts)),
            denied_accounts=tuple(words(one.denied_accounts)),
            allowed_qos=tuple(words(one.allowed_qos)),
            denied_qos=tuple(words(one.denied_qos)),
            qos=one.qos,
        )
        for one in _decoded(document, _RestPartitions).partitions
    ]


def _decoded[T](document: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(document, type=form)
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"slurmrestd's answer: {error}") from error


def _limit(minutes: int | None) -> int | None:
    """A limit in microseconds; -1 stands for none."""
    return minutes * MINUTE if minutes is not None and minutes > 0 else None
