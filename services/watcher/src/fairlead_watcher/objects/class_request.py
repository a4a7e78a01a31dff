"""The request that a job makes by annotations: a class, or a priority in its place. Pure.

The annotations are those of the WDRF controller: `wdrf.x-k8s.io/urgent`, `…/approved` and, after their model, any other
class by its name; `wdrf.x-k8s.io/priority-override` with an integer. Asking is free: policy grants.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fairlead_contracts.frontend.marks import ASK_PREFIX
from fairlead_contracts.messages.state import Fault
from fairlead_kube.kinds.quantities import HIGHEST_INT32, LOWEST_INT32, int32
from fairlead_watcher.objects.metadata import Texts

OVERRIDE = ASK_PREFIX + "priority-override"
_FIRST = ("urgent", "approved")
"""The order in which classes count where one place asks for several, as in the WDRF controller; others follow by
name."""
_TRUTH = {"true": True, "false": False}
_SETTINGS = ("aging", "max-aging", "weight", "priority-weight", "alpha")
"""Beginnings of names of settings that the WDRF and DRF controllers have for all jobs. No class is called so."""
_OF_THE_POLICY = "take it away: aging and weights are not asked for by a job, the policy sets them for everybody (`aging`, `weight`)"


class AnnotationSource(NamedTuple):
    """The object whose annotations count."""

    field: str
    """The path of the annotations, as their author finds them."""
    annotations: Texts


class ClassRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The class and the priority that are asked for, and what cannot be read."""

    requested_class: str | None = None
    priority_override: int | None = None
    faults: list[Fault] = []


NO_CLASS_REQUEST = ClassRequest()


def class_request_in(places: Sequence[AnnotationSource]) -> ClassRequest:
    """The class and the priority that a job asks for.

    Args:
        places: the most specific one first. It wins: "false" there takes back what a later place asks for.
    """
    asking = [place for place in places if any(key.startswith(ASK_PREFIX) for key in place.annotations)]
    if not asking:
        return NO_CLASS_REQUEST
    faults: list[Fault] = []
    classes: dict[str, bool] = {}
    requested: str | None = None
    override: int | None = None
    for place in asking:
        own = _classes(place, faults)
        wanted = [name for name, asked in own.items() if asked and classes.get(name, True)]
        if requested is None and wanted:
            requested = min(wanted, key=_rank)
        classes = own | classes
        found = _override(place, faults)
        override = found if override is None else override
    return ClassRequest(requested_class=requested, priority_override=override, faults=faults)


def _rank(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _classes(place: AnnotationSource, faults: list[Fault]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for key, value in place.annotations.items():
        if not key.startswith(ASK_PREFIX) or key == OVERRIDE:
            continue
        name = key.removeprefix(ASK_PREFIX)
        if name.startswith(_SETTINGS):
            faults.append(_fault(place, key, value, _OF_THE_POLICY))
        elif value in _TRUTH:
            found[name] = _TRUTH[value]
        else:
            faults.append(_fault(place, key, value, 'write "true" or "false"'))
    return found


def _override(place: AnnotationSource, faults: list[Fault]) -> int | None:
    value = place.annotations.get(OVERRIDE)
    found = int32(value)
    if value is not None and found is None:
        remedy = f"write an integer from {LOWEST_INT32} to {HIGHEST_INT32}, in quotation marks"
        faults.append(_fault(place, OVERRIDE, value, remedy))
    return found


def _fault(place: AnnotationSource, key: str, value: str, remedy: str) -> Fault:
    return Fault(field=f"{place.field}[{key}]", value=value, remedy=remedy)
