"""The demand of pods, pod sets and Workloads, as Kueue counts it. Pure.

Two things cannot be seen from here: defaults of a LimitRange, and what Kueue's configuration excludes or transforms.
Where Kueue has said what it counts (`status.resourceRequests` or the admission), that counts instead. The resource
`pods` is not among what is asked for; `pods_kept` gives them.

A Workload that may be admitted in part (`minCount`) asks for the fewest pods that it starts with: Kueue admits it as soon
as these fit, with as many as fit then. From there on it holds what its admission says.
"""

from collections.abc import Iterator, Mapping

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.cards import CARD_RESOURCES
from fairlead_kube.kinds.objects import RawAmounts
from fairlead_kube.kinds.pods import PodSpec, ResourceRequirements
from fairlead_kube.kinds.quantities import from_kueue_count, in_base_units, kueue_count, nanos
from fairlead_kube.kinds.workloads import PodSet, PodSetAssignment, Workload

type Demand = dict[str, int]
"""Amounts by resource, in base units (see contracts)."""

_PODS = "pods"
_ONE_POD = 1000
_POD_LEVEL = frozenset({"cpu", "memory"})
_DEFAULTED = _POD_LEVEL | {"ephemeral-storage"}
"""Resources that a LimitRange gives to pods which do not ask for them, in its namespace alone."""


def pod_demand(spec: PodSpec) -> Demand:
    """The effective request of one pod (`PodRequests` of component-helpers).

    The larger of the sum of the containers and of what any init container needs at its time, plus overhead. Sidecars,
    init containers with restart policy Always, count beside all that comes after them. A limit without a request is
    a request. Requests of the pod as a whole take the place of the sum.

    Raises:
        FieldError: a quantity cannot be read; names the field.
    """
    return _based(_pod_counts(spec, "spec"), "spec")


def pod_set_demand(pod_set: PodSet, count: int | None = None, *, field: str = "podSet") -> Demand:
    """The demand of `count` pods of the set, by default of all.

    Raises:
        FieldError: a quantity cannot be read; names the field.
    """
    pods = pod_set.count if count is None else count
    counts = _pod_counts(pod_set.template.spec, f"{field}.template.spec")
    return _based({resource: amount * pods for resource, amount in counts.items()}, field)


def workload_demand(workload: Workload) -> Demand:
    """The quota that the Workload holds, or else what it starts with; pods that ended (reclaimable) are left out.

    Raises:
        FieldError: a quantity cannot be read; names the field.
    """
    left = pods_left(workload)
    if workload.status.admission is not None:
        parts = [held for _, held in _held(workload)]
    elif requests := workload.status.resource_requests:
        field, full = "status.resourceRequests", _not_ended(workload)
        parts = [
            _based(_part(_counts(one.resources, field), full.get(one.name, 0), left.get(one.name, 0)), field)
            for one in requests
        ]
    else:
        parts = [
            pod_set_demand(one, left[one.name], field=f"spec.podSets[{place}]")
            for place, one in enumerate(workload.spec.pod_sets or ())
        ]
    total: Demand = {}
    for part in parts:
        _add(total, part)
    return total


def is_counted(workload: Workload) -> bool:
    """Whether Kueue has said what it counts of the Workload; before, resources that it is told to leave out stand in its demand."""
    return workload.status.admission is not None or bool(workload.status.resource_requests)


def counted_otherwise(workload: Workload, demand: Demand) -> bool:
    """Whether Kueue has said that it counts other resources of all pods than they ask for.

    Some are left out, others stand in their place or beside them, and of claims (DRA) the devices are counted.
    """
    if not is_counted(workload) or workload.status.reclaimable_pods:
        return False
    pod_sets = workload.spec.pod_sets or ()
    if any(one.min_count is not None for one in pod_sets):
        return False  # it may hold fewer pods than others of its shape will
    asked = _asked(workload)
    return not asked <= demand.keys() | {_PODS} or not demand.keys() <= asked | _DEFAULTED


def counted_in_namespace(workload: Workload, demand: Demand) -> bool:
    """Whether a LimitRange may have added to what Kueue counts of the Workload: then that holds in its namespace alone.

    No Workload says so. A LimitRange adds amounts of resources that Kubernetes or HAMi know; Kueue's configuration adds others.
    """
    asked = _asked(workload)
    return asked <= demand.keys() | {_PODS} and demand.keys() <= asked | _DEFAULTED | {*CARD_RESOURCES}


def _asked(workload: Workload) -> set[str]:
    asked = set[str]()
    for one in workload.spec.pod_sets or ():
        spec = one.template.spec
        for container in (*(spec.containers or ()), *(spec.init_containers or ())):
            asked.update(container.resources.requests or (), container.resources.limits or ())
    return asked


def workload_charges(workload: Workload) -> dict[str, Demand]:
    """The quota that the Workload holds, by flavor; nothing where it was not admitted, or its flavors are not told.

    Raises:
        FieldError: a quantity cannot be read; names the field.
    """
    charges: dict[str, Demand] = {}
    for one, held in _held(workload):
        for resource, amount in held.items():
            flavor = (one.flavors or {}).get(resource)
            if flavor is not None and amount:
                of_flavor = charges.setdefault(flavor, {})
                of_flavor[resource] = of_flavor.get(resource, 0) + amount
    return charges


def bound_demand(spec: PodSpec) -> Demand:
    """The amounts that a pod takes of its node, with its place; the place alone if none can be read."""
    try:
        demand = pod_demand(spec)
    except FieldError:
        demand = {}
    return {name: amount for name, amount in demand.items() if amount} | {_PODS: _ONE_POD}


def card_asks(spec: PodSpec) -> list[Demand]:
    """The cards that containers ask for, of those that ask for any.

    Raises:
        FieldError: a quantity cannot be read.
    """
    asks: list[Demand] = []
    for container in spec.containers or ():
        # HAMi looks at limits first.
        amounts = {**(container.resources.requests or {}), **(container.resources.limits or {})}
        ask = {name: in_base_units(name, amounts[name]) for name in CARD_RESOURCES if name in amounts}
        if any(ask.values()):
            asks.append(ask)
    return asks


def pods_left(workload: Workload) -> dict[str, int]:
    """The pods of each set that are still to run or running; where none runs, the fewest that it starts with."""
    left = _not_ended(workload)
    if workload.status.admission is None:
        left |= {one.name: min(one.fewest, left[one.name]) for one in workload.spec.pod_sets or ()}
    return left


def _not_ended(workload: Workload) -> dict[str, int]:
    ended = {one.name: one.count for one in workload.status.reclaimable_pods or ()}
    return {one.name: max(0, one.count - ended.get(one.name, 0)) for one in workload.spec.pod_sets or ()}


def pods_kept(workload: Workload) -> dict[str, int]:
    """The pods of each set that the Workload still has, or was admitted with where those are fewer."""
    left = pods_left(workload)
    for one in workload.assignments:
        if one.count is not None:
            left[one.name] = min(one.count, left.get(one.name, one.count))
    return left


def _held(workload: Workload) -> Iterator[tuple[PodSetAssignment, Demand]]:
    """The usage of its admission without reclaimed pods; as in Kueue, one pod's share is rounded down."""
    left = pods_left(workload)
    specified = {one.name: one.count for one in workload.spec.pod_sets or ()}
    for place, one in enumerate(workload.assignments):
        field = f"status.admission.podSetAssignments[{place}].resourceUsage"
        usage = _counts(one.resource_usage, field)
        admitted = specified.get(one.name, 0) if one.count is None else one.count
        yield one, _based(_part(usage, admitted, left.get(one.name, 0)), field)


def _part(amounts: dict[str, int], of: int, now: int) -> dict[str, int]:
    """The part of fewer pods than these amounts are of."""
    return {resource: amount // of * now for resource, amount in amounts.items()} if now < of else amounts


def _pod_counts(spec: PodSpec, field: str) -> dict[str, int]:
    """Kueue's counts of one pod: rounded up after all containers are summed; never negative."""
    # Plain dicts: a Counter takes several times as long, and each event of a Workload comes through here.
    running: dict[str, int] = {}
    for place, container in enumerate(spec.containers or ()):
        _add(running, _requests(container.resources, f"{field}.containers[{place}]"))
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for place, container in enumerate(spec.init_containers or ()):
        asked = _requests(container.resources, f"{field}.initContainers[{place}]")
        if container.restart_policy == "Always":
            _add(running, asked)
            _add(sidecars, asked)
            asked = sidecars
        else:
            _add(asked, sidecars)
        peak = _larger(peak, asked)
    total = _larger(running, peak)
    if spec.resources is not None:
        whole = _requests(spec.resources, field)
        total |= {
            name: amount
            for name, amount in whole.items()
            if name in _POD_LEVEL or name.startswith("hugepages-")
        }
    _add(total, _nanos(spec.overhead, f"{field}.overhead"))
    return {resource: max(0, kueue_count(resource, amount)) for resource, amount in total.items()}


def _requests(resources: ResourceRequirements, field: str) -> dict[str, int]:
    limits = _nanos(resources.limits, f"{field}.resources.limits")
    return limits | _nanos(resources.requests, f"{field}.resources.requests")


def _nanos(amounts: RawAmounts | None, field: str) -> dict[str, int]:
    return {name: nanos(amount, field=f"{field}[{name}]") for name, amount in (amounts or {}).items()}


def _counts(amounts: RawAmounts | None, field: str) -> dict[str, int]:
    return {name: kueue_count(name, amount) for name, amount in _nanos(amounts, field).items()}


def _based(counts: Mapping[str, int], field: str) -> Demand:
    return {name: from_kueue_count(name, count, field=f"{field}[{name}]") for name, count in counts.items()}


def _larger(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {**left, **right}}


def _add(total: dict[str, int], part: Mapping[str, int]) -> None:
    for name, amount in part.items():
        total[name] = total.get(name, 0) + amount
