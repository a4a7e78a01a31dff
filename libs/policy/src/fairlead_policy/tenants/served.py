"""The jobs that a tree has served, as the sequences that others read (H-DRF)."""

from collections.abc import Sequence

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, Rows, join
from fairlead_policy.exact.scoring import Measure
from fairlead_policy.tenants.merging import Field, Stretch, leaf_stretch, ranked, score_node
from fairlead_policy.tenants.rescaling import scored
from fairlead_policy.tenants.serving import Branch, Leaf, Serving


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
        counts = {leaf.number: self._count(leaf) for leaf in self._nodes if isinstance(leaf, Leaf)}
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

    def _count(self, leaf: Leaf) -> int:
        return leaf.started + (self._moving and leaf.job() is not None)

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
