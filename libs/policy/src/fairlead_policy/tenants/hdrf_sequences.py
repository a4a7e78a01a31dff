"""The sequences of a tree with H-DRF: of the jobs that it has served so far, and of all.

A node's state depends on how many of its own jobs have started and on nothing else. So the whole sequence is made from the
leaves up: the children's jobs are merged by one sort, as in any tree, and what the node counts to hold is then followed along
them. That is the sequence that `hdrf_filling` finds job by job, at four fifths of the cost where somebody wants all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, Rows, join
from fairlead_policy.exact.scoring import ShareMeasure
from fairlead_policy.tenants.hdrf_filling import Branch, HdrfFilling, Leaf, Member
from fairlead_policy.tenants.merging import JobTable, SequencePrefix, leaf_prefix, merge, ranked, score_node
from fairlead_policy.tenants.rescaling import Dominant, SiblingState, scored


def served_prefixes(
    filling: HdrfFilling, measure: ShareMeasure, now: Micros
) -> tuple[JobTable, dict[str, SequencePrefix]]:
    """The jobs that were served, and the beginning of the sequence of each tenant that has some of them.

    Where keys move with the clock, each tenant's next job is there as well: it may pass the last one that was served.
    """
    return _ServedPrefixes(filling, measure, now).all()


class _ServedPrefixes:
    def __init__(self, filling: HdrfFilling, measure: ShareMeasure, now: Micros) -> None:
        self._measure, self._now = measure, now
        self._moving = measure.rules.cap is not None and measure.rules.rate > 0
        self._nodes = list(filling.reached(untouched=self._moving))
        counts = {
            leaf.number: leaf.started + (self._moving and leaf.job() is not None)
            for leaf in self._nodes
            if isinstance(leaf, Leaf)
        }
        leaves = [node for node in self._nodes if isinstance(node, Leaf) and counts[node.number]]
        tenant_queues = [leaf.tenant_queue for leaf in leaves if leaf.tenant_queue is not None]
        self._table = JobTable.of(tenant_queues, [counts[leaf.number] for leaf in leaves])
        self._numbers = {leaf.number: number for number, leaf in enumerate(leaves)}

    def all(self) -> tuple[JobTable, dict[str, SequencePrefix]]:
        found: dict[str, SequencePrefix] = {}
        for node in self._nodes:
            if isinstance(node, Leaf):
                if node.number in self._numbers:
                    found[node.tenant] = leaf_prefix(self._table, self._numbers[node.number])
                continue
            below = [found[child.tenant] for child in node.children if child.tenant in found]
            if below:
                found[node.tenant] = self._of_branch(node, below)
        return self._table, found

    def _of_branch(self, node: Branch, below: Sequence[SequencePrefix]) -> SequencePrefix:
        leaves, rows, held = list(node.line.leaf), list(node.line.row), list(node.line.held)
        following = node.next() if self._moving else None
        if following is not None:
            leaves.append(following.number)
            rows.append(following.started)
            held.append(node.dominant())
        starts = self._table.starts[[self._numbers[leaf] for leaf in leaves]]
        at: Ints = starts + np.array(rows, np.int64)
        holdings = node.scored_node()
        prefix = SequencePrefix(
            at, score_node(self._table, at, holdings), node.next() is None, self._compared(below)
        )
        return scored(prefix, self._table, held, holdings)

    def _compared(self, below: Sequence[SequencePrefix]) -> Rows | None:
        """The children's jobs by their own tuples, ascending: the clock may turn these round."""
        if not self._moving:
            return None
        rows = join([prefix.scores.rows for prefix in below])
        at = np.concatenate([prefix.at for prefix in below])
        order, _ = ranked(rows, at, self._table, self._measure, self._now)
        return rows.take(order)


class _NodeSequence(NamedTuple):
    """A node's sequence, and its state along it."""

    prefix: SequencePrefix
    states: Iterator[SiblingState]
    """States of the node, one after each of its jobs."""


def whole_sequences(
    top: Member, table: JobTable, measure: ShareMeasure, now: Micros
) -> dict[str, SequencePrefix]:
    """The sequence of each tenant that has waiting jobs, or some below it.

    Args:
        top: the tree as it stands before any of them starts; left as it is.
        table: all jobs of its tenants.
        now: the instant that the cap is measured from.
    """
    sequences = _WholeSequences(table, measure, now)
    sequences.of(top, inner=False)
    return sequences.found


class _WholeSequences:
    def __init__(self, table: JobTable, measure: ShareMeasure, now: Micros) -> None:
        self.found: dict[str, SequencePrefix] = {}
        self._table, self._measure, self._now = table, measure, now
        queues = enumerate(table.tenant_queues)
        self._numbers = {tenant_queue.tenant: number for number, tenant_queue in queues}

    def of(self, node: Member, *, inner: bool) -> _NodeSequence | None:
        """A node's sequence; None where nothing waits there. The states of the node at the top are asked for by nobody."""
        if isinstance(node, Leaf):
            return self._of_leaf(node)
        below = {}
        for number, child in enumerate(node.children):
            served = self.of(child, inner=True)
            if served is not None:
                below[number] = served
        return self._of_branch(node, below, inner=inner) if below else None

    def _of_leaf(self, leaf: Leaf) -> _NodeSequence | None:
        number = self._numbers.get(leaf.tenant)
        if number is None:
            return None
        prefix = self.found[leaf.tenant] = leaf_prefix(self._table, number)
        if leaf.tenant in self._measure.rules.children:  # what runs below it counts as its own
            prefix = replace(prefix, scores=score_node(self._table, prefix.at, leaf.scored_node()))
        columns = self._table.columns
        return _NodeSequence(prefix, leaf.states(columns.rank[prefix.at], columns.demand[:, prefix.at]))

    def _of_branch(self, node: Branch, below: dict[int, _NodeSequence], *, inner: bool) -> _NodeSequence:
        holdings = node.scored_node()
        merged = merge(self._table, [served.prefix for served in below.values()], holdings, self._now)
        states = {number: served.states for number, served in below.items()}
        held: list[Dominant] = []
        after: list[SiblingState] = []
        child_shares = node.child_shares.copy()
        for number in self._turns(merged, below).tolist():
            held.append(child_shares.dominant())
            child_shares.set_child(number, *next(states[number]))
            if inner:
                after.append(child_shares.state())
        prefix = self.found[node.tenant] = scored(merged, self._table, held, holdings)
        return _NodeSequence(prefix, iter(after))

    def _turns(self, merged: SequencePrefix, below: dict[int, _NodeSequence]) -> Ints:
        """The number of the child whose job each one is."""
        child = np.empty(len(self._table.row), np.int64)
        for number, served in below.items():
            child[served.prefix.at] = number
        found: Ints = child[merged.at]
        return found
