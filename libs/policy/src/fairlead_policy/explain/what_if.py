"""Answers to what-if questions, such as where a job would stand in another class: a snapshot with just that changed.

Beside them the parts of its start tag: what runs, past use, and its own tenant's jobs before it.

`_least_end` is the least end of a tenant's use that brings a job before another, found by trying it in the order itself,
for trees of tenants and classes that are not strict, where less use of one tenant also changes the sequence of those
above it. What is found is tried from both sides: the end moves the job, and one unit less does not.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

import msgspec
import numpy as np

from fairlead_contracts.base.quantities import base_units
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.explanations import PromotedPosition, ShareBreakdown
from fairlead_policy.exact.ranking import nearest_float
from fairlead_policy.explain.counterfactuals import ends_to_pass, stands_alone
from fairlead_policy.explain.neighbourhood import count_before
from fairlead_policy.explain.side_by_side import asked_in_columns
from fairlead_policy.order.merging import sort_key
from fairlead_policy.order.order import Order
from fairlead_policy.rules.jobs import PositionedJob

GIBIBYTE = 2**30
_TRIED = 2000
"""Jobs of a tree at most in which ends are found by trying: each try merges it anew."""


_MOST_CLASSES = 4

type AmountsByResource = Mapping[str, int]


def unit_of(resource: str) -> int:
    """The unit that people count a resource in, as base units: one card, one core, one GiB."""
    return GIBIBYTE if base_units(resource) == 1 else base_units(resource)


def breakdown_of(order: Order, position: Position) -> ShareBreakdown | None:
    """The parts of a waiting job's start tag; None where it does not wait, or with H-DRF."""
    rules, found = order.rules, order.find(position)
    if found is None or rules.rescaled:
        return None
    sequence, at = found
    tree = order.snapshot.trees[sequence.top]
    running: Counter[str] = Counter()
    remembered = tree.past_below(tree.top)
    for tenant_queue in tree.tenant_queues.values():
        running.update(tenant_queue.use)
        remembered.update(tenant_queue.past)
    jobs = sequence.first_columns(at)
    before = asked_in_columns(jobs, rules)
    weight, entitled = rules.weight_of(sequence.top), rules.entitlement_of(sequence.top)
    parts = {
        name: (running[name] + remembered[name] + before[name]) * unit / entitled
        for name, unit in rules.unit_share_by_name.items()
        if entitled
    }
    return ShareBreakdown(
        tenant=sequence.top,
        weight=nearest_float(weight),
        entitled=nearest_float(entitled),
        running=_held(running),
        own_running=_held(tree.tenant_queues[position.tenant].use),
        past=_held(remembered),
        before=_held(before),
        jobs=at - int(np.isin(jobs.queue, sequence.measure.queues.apart).sum()),
        shares={name: nearest_float(part) for name, part in sorted(parts.items()) if part},
    )


def if_promoted(order: Order, position: Position, job_class: str) -> PromotedPosition | None:
    """The position of a waiting job in another class; None where it does not wait."""
    found = order.find(position)
    if found is None:
        return None
    sequence, at = found
    job = sequence.job_at(at)
    promoted = msgspec.structs.replace(job, job_class=job_class)
    return _promoted(Order(order.snapshot.with_job(promoted, instead_of=job), order.now), promoted)


def in_higher_classes(order: Order, position: Position) -> list[PromotedPosition]:
    """The position of a waiting job in the few higher classes that an operator could grant, the next higher one first."""
    rules = order.rules
    if position.override is not None and not rules.strict:
        return []  # a number of its own counts, whatever the class
    higher = rules.classes[: rules.rank_of(position.job_class)][::-1][:_MOST_CLASSES]
    found = (if_promoted(order, position, job_class) for job_class in higher)
    return [one for one in found if one is not None]


def ended_of(
    order: Order, position: Position, ends: Sequence[AmountsByResource | None]
) -> list[PromotedPosition | None]:
    """The position of a job after each of these ends; None where there is none, or it is known without trying."""
    if not has_to_be_tried(position):
        return [None for _ in ends]
    return [_promoted(_ended(order, position.tenant, one), position) if one else None for one in ends]


def has_to_be_tried(position: Position) -> bool:
    """Whether the rank after an end has to be tried: a share that turns finite may pass other finite ones, too."""
    return position.unbounded and not position.top


def _promoted(order: Order, job: PositionedJob) -> PromotedPosition | None:
    """The job's position, and how many stand before it below its own top-level tenant."""
    position = order.position(job)
    if position is None:
        return None
    tenants = list(order.snapshot.trees[order.rules.top_of(job.tenant)].tenant_queues)
    return PromotedPosition(position=position, own=sum(count_before(order, position, tenants).values()))


def least_ends_to_pass(
    order: Order, position: Position, others: Iterable[Position]
) -> list[AmountsByResource | None]:
    """The least of its own tenant's running jobs that has to end before this one passes each of the other jobs.

    Base units by resource. None where no end does it, or where the tree is too large to try: exact where the
    tenant stands alone, elsewhere in whole units of what it holds most of. The others are of other top-level
    tenants.
    """
    breakdown = breakdown_of(order, position)
    if breakdown is None:
        return [None for _ in others]
    if stands_alone(position, order.rules):
        return [ends_to_pass(breakdown, position, other, order.rules, order.now) for other in others]
    return [_least_end(order, position, other) for other in others]


def _least_end(order: Order, position: Position, other: Position) -> AmountsByResource | None:
    """The least whole units of the dominant resource whose end moves the job; None where no end of it does."""
    rules, now = order.rules, order.now
    tree, bar = order.snapshot.trees[rules.top_of(position.tenant)], sort_key(other, rules, now)
    tenant_queue = tree.tenant_queues[position.tenant]
    if not tenant_queue.running or sum(map(len, tree.tenant_queues.values())) > _TRIED:
        return None

    resource = position.dominant
    unit, held = unit_of(resource), tenant_queue.use.get(resource, 0)

    def amounts(units: int) -> AmountsByResource:
        return {resource: min(units * unit, held)}

    def moves(units: int) -> bool:
        found = _ended(order, position.tenant, amounts(units)).position(position)
        return found is not None and sort_key(found, rules, now) < bar

    most = ceil(held / unit)
    if not held or not moves(most):
        return None
    # More moves it where less does.
    return amounts(bisect_left(range(most), x=True, lo=1, key=moves))


def _ended(order: Order, tenant: str, ends: AmountsByResource) -> Order:
    """The order as if so much of the tenant's had ended."""
    return Order(order.snapshot.without_use(tenant, ends), order.now)


def _held(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in sorted(amounts.items()) if amount}
