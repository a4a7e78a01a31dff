"""Whether stated nodes could hold a stated job at all: the same question as of a snapshot, asked of what services know.

Services know what nodes have and what HAMi's pods hold of their cards, not what pods use of all else, nor taints that
are tolerated or required affinity. So only what cannot be is told: all that is not known is taken as if it stood in
nobody's way, which can hide a job that does not fit and never makes one of a job that does. It is a word on the nodes
of now: an autoscaler may add larger ones. Where a node's register of cards cannot be read, nothing is proven of jobs that
ask for cards: a HAMi that is newer than we are may give them away.
"""

from collections.abc import Iterable, Mapping, Sequence

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.cards import CARD_RESOURCES, PER_VGPU
from fairlead_contracts.frontend.observed import ObservedPods
from fairlead_contracts.messages.state import JobShape, JobState, NodeState
from fairlead_policy.fit.card_table import CardTable
from fairlead_policy.fit.observed import fit_question
from fairlead_policy.fit.results import Unfit
from fairlead_policy.fit.shapes import FitNode
from fairlead_policy.fit.unschedulable import UnschedulableReason, ask_refused
from fairlead_policy.hami.requests import VgpuRequestError

_ALIKE = "pods"
"""Name of a job's pods that are not stated one by one."""
_MOST_KEPT = 3
"""Nodes that the tables may hold for each that exists: nobody asks for those that are gone or have changed."""


class StatedNodes:
    """The nodes of one cluster, asked again and again: each is translated once for as long as it stays as it is.

    Measured with 5,000 nodes of eight cards: 20 ms a question where a job fits, 0.2 s where it is to be said why it does not.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Translated] = {}
        self._tables = _tables()
        self._kept = 0
        """Nodes that were put into the tables, which forget none."""

    def outgrown(self, job: JobState, nodes: Iterable[NodeState]) -> tuple[UnschedulableReason, ...]:
        """The reasons for which the job could not run if nothing else ran; empty where nothing is proven.

        Args:
            job: a waiting job.
            nodes: of its cluster, those that are not ready too: they may be again. None say nothing.
        """
        known = list(nodes)
        return self._proven_reasons(job, known, self._translated(known), empty=True)

    def crowded_out(self, job: JobState, nodes: Iterable[NodeState]) -> tuple[UnschedulableReason, ...]:
        """The reasons for which held cards leave the job no room; empty where none is proven or no card is asked.

        Args:
            job: a waiting job.
            nodes: of its cluster; those that are not ready take nothing now.
        """
        known = list(nodes)
        if not any(card.used_count for node in known for card in node.cards):
            return ()
        ready = [node for node in known if node.ready]
        return self._proven_reasons(job, ready, self._translated(known), empty=False)

    def _translated(self, nodes: Sequence[NodeState]) -> "dict[str, _Translated]":
        before, self._known = self._known, {}
        for node in nodes:
            found = before.get(node.name)
            if found is None or found.stated is not node:
                found = _Translated(node)
                self._kept += 1
            self._known[node.name] = found
        if self._kept > _MOST_KEPT * len(nodes):
            self._tables, self._kept = _tables(), len(nodes)
        return self._known

    def _proven_reasons(
        self, job: JobState, nodes: Sequence[NodeState], known: "Mapping[str, _Translated]", *, empty: bool
    ) -> tuple[UnschedulableReason, ...]:
        shapes = job.shapes or _even_shapes(job)
        if not shapes or not nodes or _asks_for_unknown_cards(shapes, nodes):
            return ()
        here = (known[node.name] for node in nodes)
        try:
            question = fit_question(
                tuple(map(_observed, shapes)), (one.empty if empty else one.held for one in here)
            )
        except VgpuRequestError as error:
            return (ask_refused(error),)
        except FieldError:
            return ()  # a quantity that no cluster has: its watcher objects to it on the job itself
        if not empty and not question.by_cards:
            return ()
        found = question.answer(table=self._tables[empty])
        return found.reasons if isinstance(found, Unfit) and found.exact else ()


def _tables() -> dict[bool, CardTable]:
    """The tables of empty nodes, and of nodes whose cards are held."""
    return {True: CardTable(), False: CardTable()}


class _Translated:
    """A node with nothing in use, and with only its cards in use."""

    def __init__(self, stated: NodeState) -> None:
        self.stated = stated
        self.held = FitNode(
            name=stated.name,
            free=stated.allocatable,
            allocatable=stated.allocatable,
            labels=stated.labels,
            cards=tuple(stated.cards),
            cards_unread=bool(stated.cards_refused),
        )
        self.empty = self.held.emptied()


def _asks_for_unknown_cards(shapes: Iterable[JobShape], nodes: Sequence[NodeState]) -> bool:
    """Whether pods ask for cards of which nothing is known.

    Older watchers tell of no node's, and state parts summed up over containers.
    """
    if not any(node.cards for node in nodes):
        asking = [ask for shape in shapes for ask in (shape.card_asks or [shape.demand])]
        return any(ask.get(name) for ask in asking for name in PER_VGPU)
    return any(not shape.card_asks and any(map(shape.demand.get, PER_VGPU)) for shape in shapes)


def _even_shapes(job: JobState) -> list[JobShape]:
    """The pods of a job that states only their number, all alike; none where its demand does not divide evenly."""
    if job.pods < 1 or any(amount % job.pods for amount in job.demand.values()):
        return []
    demand = {name: amount // job.pods for name, amount in job.demand.items()}
    return [JobShape(name=_ALIKE, pods=job.pods, demand=demand)]


def _observed(shape: JobShape) -> ObservedPods:
    whole: Mapping[str, int] = {name: shape.demand[name] for name in CARD_RESOURCES if shape.demand.get(name)}
    return ObservedPods(
        name=shape.name,
        count=shape.pods,
        demand=shape.demand,
        card_asks=tuple(shape.card_asks or ([whole] if whole else ())),
        card_annotations=shape.card_annotations,
        selector=shape.selector,
    )
