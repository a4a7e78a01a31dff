"""The sequences of a tree with H-DRF: of the jobs that it has served so far, and of all.

A node's state depends on how many of its own jobs have started and on nothing else. So the whole sequence is made from the
leaves up: the children's jobs are merged by one sort, as in any tree, and what the node counts to hold is then told along
them. That is the sequence that `serving` finds job by job, at less than half the cost where somebody wants all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, Rows, join
from fairlead_policy.exact.scoring import Measure
from fairlead_policy.tenants.merging import Field, Stretch, leaf_stretch, merge, ranked, score_node
from fairlead_policy.tenants.rescaling import Dominant, SiblingState, scored
from fairlead_policy.tenants.serving import Branch, Leaf, Member, Serving


def served(serving: Serving, measure: Measure, now: Micros) -> tuple[Field, dict[str, Stretch]]:
    """The jobs that were served, and the beginning of the sequence of each tenant that has some of them.

    Where keys move with the clock, each tenant's next job is there as well: it may pass the last one that was served.
    """
    return _Telling(serving, measure, now).told()


class _Telling:
    def __init__(self, serving: Serving, measure: Measure, now: Micros) -> None:
        self._measure, self._now = measure, now
        self._moving = measure.rules.cap is not None and measure.rules.rate > 0
        self._nodes = list(serving.reached(untouched=self._moving))
        counts = {
            leaf.number: leaf.started + (self._moving and leaf.job() is not None)
            for leaf in self._nodes
            if isinstance(leaf, Leaf)
        }
        leaves = [node for node in self._nodes if isinstance(node, Leaf) and counts[node.number]]
        tenant_queues = [leaf.tenant_queue for leaf in leaves if leaf.tenant_queue is not None]
        self._field = Field.of(tenant_queues, [counts[leaf.number] for leaf in leaves])
        self._numbers = {leaf.number: number for number, leaf in enumerate(leaves)}

    def told(self) -> tuple[Field, dict[str, Stretch]]:
        found: dict[str, Stretch] = {}
        for node in self._nodes:
            if isinstance(node, Leaf):
                if node.number in self._numbers:
                    found[node.tenant] = leaf_stretch(self._field, self._numbers[node.number])
                continue
            below = [found[child.tenant] for child in node.children if child.tenant in found]
            if below:
                found[node.tenant] = self._of_branch(node, below)
        return self._field, found

    def _of_branch(self, node: Branch, below: Sequence[Stretch]) -> Stretch:
        leaves, rows, held = list(node.line.leaf), list(node.line.row), list(node.line.held)
        following = node.next() if self._moving else None
        if following is not None:
            leaves.append(following.number)
            rows.append(following.started)
            held.append(node.dominant())
        starts = self._field.starts[[self._numbers[leaf] for leaf in leaves]]
        at: Ints = starts + np.array(rows, np.int64)
        told = node.told()
        stretch = Stretch(at, score_node(self._field, at, told), node.next() is None, self._compared(below))
        return scored(stretch, self._field, held, told)

    def _compared(self, below: Sequence[Stretch]) -> Rows | None:
        """The children's jobs by their own tuples, ascending: the clock may turn these round."""
        if not self._moving:
            return None
        rows = join([stretch.scores.rows for stretch in below])
        at = np.concatenate([stretch.at for stretch in below])
        order, _ = ranked(rows, at, self._field, self._measure, self._now)
        return rows.take(order)


class _ServedNode(NamedTuple):
    """A node's jobs."""

    stretch: Stretch
    standings: Iterator[SiblingState]
    """States of the node, one after each of its jobs."""


def served_whole(top: Member, field: Field, measure: Measure, now: Micros) -> dict[str, Stretch]:
    """The sequence of each tenant that has waiting jobs, or some below it.

    Args:
        top: the tree as it stands before any of them starts; left as it is.
        field: all jobs of its tenants.
        measure: the pool's measure.
        now: the instant that the cap is measured from.
    """
    whole = _Whole(field, measure, now)
    whole.of(top, inner=False)
    return whole.found


class _Whole:
    def __init__(self, field: Field, measure: Measure, now: Micros) -> None:
        self.found: dict[str, Stretch] = {}
        self._field, self._measure, self._now = field, measure, now
        queues = enumerate(field.tenant_queues)
        self._numbers = {tenant_queue.tenant: number for number, tenant_queue in queues}

    def of(self, node: Member, *, inner: bool) -> _ServedNode | None:
        """A node's jobs; None where nothing waits there. The standings of the one at the top are asked for by nobody."""
        if isinstance(node, Leaf):
            return self._of_leaf(node)
        below = {}
        for number, child in enumerate(node.children):
            served = self.of(child, inner=True)
            if served is not None:
                below[number] = served
        return self._of_branch(node, below, inner=inner) if below else None

    def _of_leaf(self, leaf: Leaf) -> _ServedNode | None:
        number = self._numbers.get(leaf.tenant)
        if number is None:
            return None
        stretch = self.found[leaf.tenant] = leaf_stretch(self._field, number)
        if leaf.tenant in self._measure.rules.children:  # what runs below it counts as its own
            stretch = replace(stretch, scores=score_node(self._field, stretch.at, leaf.told()))
        columns = self._field.columns
        return _ServedNode(stretch, leaf.standings(columns.rank[stretch.at], columns.demand[:, stretch.at]))

    def _of_branch(self, node: Branch, below: dict[int, _ServedNode], *, inner: bool) -> _ServedNode:
        told = node.told()
        merged = merge(self._field, [served.stretch for served in below.values()], told, self._now)
        standings = {number: served.standings for number, served in below.items()}
        held: list[Dominant] = []
        after: list[SiblingState] = []
        kin = node.kin.copy()
        for number in self._turns(merged, below).tolist():
            held.append(kin.dominant())
            kin.stands(number, *next(standings[number]))
            if inner:
                after.append(kin.standing())
        stretch = self.found[node.tenant] = scored(merged, self._field, held, told)
        return _ServedNode(stretch, iter(after))

    def _turns(self, merged: Stretch, below: dict[int, _ServedNode]) -> Ints:
        """The number of the child whose job each one is."""
        child = np.empty(len(self._field.row), np.int64)
        for number, served in below.items():
            child[served.stretch.at] = number
        found: Ints = child[merged.at]
        return found
