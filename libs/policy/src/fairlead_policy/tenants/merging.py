"""Sequences of nodes of the tree: a node serves its jobs in the merge of its children's sequences.

A sequence need not ascend by its jobs' own tuples (class, key, submitted, uid): a job may stand before a sibling's that
would go first by the terms of the level above. Always serving the child whose head is smallest (progressive filling) equals one sort by the
*running maximum of the whole tuple* along each child's sequence, ties by the position in it. Tuples are compared exactly
by ranking all of them once; running maxima are then those of integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, Ranking, Rows, join
from fairlead_policy.exact.scoring import JobColumns, Scores, ShareMeasure, TagScale, Tenants, score
from fairlead_policy.tenants.tenant_queue import TenantQueue


@dataclass(frozen=True, slots=True)
class JobTable:
    """The first jobs of several tenants, each in its own order, one tenant after the other."""

    tenant_queues: Sequence[TenantQueue]
    tenant_queue: Ints
    """Number of each job's tenant in `tenant_queues`."""
    row: Ints
    """Position in the tenant's own order."""
    columns: JobColumns
    starts: Ints
    """Position of each tenant's first job, and behind them the number of all jobs: tenants + 1 numbers."""
    whole: tuple[bool, ...]
    """Whether all jobs of each tenant are here."""

    @classmethod
    def of(cls, tenant_queues: Sequence[TenantQueue], depths: Sequence[int]) -> "JobTable":
        """The first jobs of each tenant, so many of each or as many as it has."""
        counts = [
            min(len(tenant_queue), depth) for tenant_queue, depth in zip(tenant_queues, depths, strict=True)
        ]
        columns = [
            tenant_queue.columns(count) for tenant_queue, count in zip(tenant_queues, counts, strict=True)
        ]
        starts = np.array([0, *accumulate(counts)])
        number = np.repeat(np.arange(len(tenant_queues)), counts)
        return cls(
            tenant_queues,
            number,
            np.arange(len(number)) - starts[number],
            JobColumns.joined(columns),
            starts,
            tuple(
                len(tenant_queue) == count for tenant_queue, count in zip(tenant_queues, counts, strict=True)
            ),
        )

    def uid_at(self, at: int) -> str:
        """The uid of a job of the table."""
        return self.tenant_queues[self.tenant_queue.item(at)].uid_at(self.row.item(at))


@dataclass(frozen=True, slots=True)
class SequencePrefix:
    """The beginning of one node's sequence."""

    at: Ints
    """Numbers of its jobs in the table."""
    scores: Scores
    """Scores as the level above compares them: by this node's use and weight."""
    whole: bool
    """Whether the sequence ends here."""
    compared: Rows | None = None
    """Children's rows that the order was made from, ascending; None where time never turns them round."""


def leaf_prefix(table: JobTable, number: int) -> SequencePrefix:
    """The prefix of a tenant without others below it: its own order."""
    first, last = int(table.starts[number]), int(table.starts[number + 1])
    scores = table.tenant_queues[number].scored(last - first).first(last - first)
    return SequencePrefix(np.arange(first, last), scores, table.whole[number])


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A node's holdings, which its scores are made of beside its jobs."""

    tenant: str
    scale: TagScale
    use: list[int]
    """Use of each resource, base units: what runs below the node, and past use."""
    lacking: bool
    """Whether that use takes in a resource of which the pool has none."""


def merge(
    table: JobTable, children: Sequence[SequencePrefix], node: ScoredNode, now: Micros
) -> SequencePrefix:
    """The node's sequence, as far as the children's beginnings tell it."""
    measure = node.scale.measure
    rows = join([child.scores.rows for child in children])
    at = np.concatenate([child.at for child in children])
    lengths = [len(child.at) for child in children]
    order, ranks = ranked(rows, at, table, measure, now)
    ends = np.cumsum(lengths)
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        np.maximum.accumulate(ranks[start:end], out=ranks[start:end])
    line = np.argsort(ranks, kind="stable")
    # Certain is what comes up to the last job of a child that goes on behind it.
    cuts = [end - 1 for end, child in zip(ends.tolist(), children, strict=True) if not child.whole]
    cut = int(np.isin(line, cuts).argmax()) + 1 if cuts else len(line)
    line = line[:cut]
    whole = cut == len(at) and all(child.whole for child in children)
    return SequencePrefix(at[line], score_node(table, at[line], node), whole, rows.take(order))


def ranked(rows: Rows, at: Ints, table: JobTable, measure: ShareMeasure, now: Micros) -> tuple[Ints, Ints]:
    """The rows in the order of their own tuples, and the position of each row in it."""
    ranking = Ranking(rows, measure.rules, measure.multipliers, now)
    order = ranking.order(lambda row: (table.uid_at(at.item(row)), 0))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return order, ranks


def score_node(table: JobTable, at: Ints, node: ScoredNode) -> Scores:
    """The node's start tags along its sequence: one cumulative sum, as for a single tenant."""
    return score(
        table.columns.take(at), Tenants.single(node.scale, node.use, lacking=node.lacking), node.scale.measure
    )
