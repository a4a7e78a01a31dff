"""The parts that every Kubernetes object has, and how its JSON is read.

Only the fields that we use are decoded; what else stands in an object costs nothing. Go writes `null` for a nil slice
or map, so each list and mapping may be None. Structs are read only: what is written is written as a patch.
"""

from datetime import datetime

import msgspec

from fairlead_contracts.base.instants import Micros, from_datetime
from fairlead_contracts.frontend.observed import LabelRequirement

type Amount = str | int | float
"""A quantity as it stands in JSON: "500m", "64Gi", or a bare number where a CRD allows one. See `quantities`."""

type RawAmounts = dict[str, Amount]
"""Quantities by resource name."""


class KubeStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all objects and parts of objects: camelCase in JSON, unknown fields are skipped."""


class OwnerReference(KubeStruct, frozen=True, kw_only=True):
    """The owner that an object is part of."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(KubeStruct, frozen=True, kw_only=True):
    """The metadata of an object, or of a pod template."""

    name: str = ""
    namespace: str = ""
    """Namespace of the object; empty for one of the whole cluster."""
    uid: str = ""
    resource_version: str = ""
    """Version of the object, opaque: compare it for equality only."""
    creation_timestamp: str | None = None
    """Time of the object's making, RFC 3339 in whole seconds; `instant` reads it."""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def created(self) -> Micros:
        """The creation time; 0 where there is none."""
        return instant(self.creation_timestamp)

    def label(self, name: str) -> str | None:
        """The label's value, if there is one."""
        return (self.labels or {}).get(name)

    def annotation(self, name: str) -> str | None:
        """The annotation's value, if there is one."""
        return (self.annotations or {}).get(name)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        return next((owner for owner in self.owner_references or () if owner.controller), None)

    @property
    def maker(self) -> OwnerReference | None:
        """The controller, or else an owner that is no pod: of pods that are one gang, the StatefulSet or its like."""
        others = (owner for owner in self.owner_references or () if owner.kind != "Pod")
        return self.controller or next(others, None)


class ApiObject(KubeStruct, frozen=True, kw_only=True):
    """An object of any kind, as far as they are all alike."""

    metadata: ObjectMeta = ObjectMeta()


class PartialObject(ApiObject, frozen=True, kw_only=True):
    """The metadata of any object: what a metadata-only list or watch gives."""

    api_version: str = ""
    kind: str = ""


class Condition(KubeStruct, frozen=True, kw_only=True):
    """A condition of an object's status."""

    type: str
    status: str = "Unknown"
    """Status: `True`, `False` or `Unknown`."""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None

    @property
    def since(self) -> Micros:
        """The instant of the last change; 0 where that is not said."""
        return instant(self.last_transition_time)


def condition(conditions: list[Condition] | None, kind: str) -> Condition | None:
    """The condition of this type, if it stands there."""
    for one in conditions or ():  # a generator takes twice as long
        if one.type == kind:
            return one
    return None


def holds(conditions: list[Condition] | None, kind: str) -> bool:
    """Whether the condition of this type is True."""
    found = condition(conditions, kind)
    return found is not None and found.status == "True"


def instant(timestamp: str | None) -> Micros:
    """A timestamp of Kubernetes, RFC 3339 with or without a fraction, as an instant; 0 for none.

    Raises:
        ValueError: the timestamp is not RFC 3339. An API server serves no such timestamp.
    """
    return from_datetime(datetime.fromisoformat(timestamp)) if timestamp else 0


class LabelSelector(KubeStruct, frozen=True, kw_only=True):
    """The labels that an object must have. None as a whole selects nothing, an empty one everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelRequirement] | None = None

    def matches(self, labels: dict[str, str] | None) -> bool:
        """Whether the labels fulfil all requirements."""
        found = labels or {}
        return all(found.get(key) == value for key, value in (self.match_labels or {}).items()) and all(
            one.holds(found) for one in self.match_expressions or ()
        )
