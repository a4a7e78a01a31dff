"""Entries of a Workload's `status.admissionChecks`, as they are written for each step. Pure."""

from collections.abc import Collection, Mapping, Sequence

from fairlead_checker.facts import CheckedWorkload
from fairlead_checker.steps import our_checks
from fairlead_contracts.base.instants import Micros, to_datetime

LONGEST = 1000
"""Characters of a message; Kueue cuts an Event at 1024."""
NO_ROOM = "Not all of its pods have room on the nodes now."
COMES_AGAIN = "It is let in as soon as they have, and tried again now and then."
type Entry = Mapping[str, object]


def ready(
    workload: CheckedWorkload, ours: Collection[str], why: str, zone: str | None, now: Micros
) -> Sequence[Entry]:
    """The entries that let a Workload through; with the zone that was found where it asks for one: its pods are kept there."""
    key = workload.zone_key
    updates: Sequence[Entry] = []
    if zone is not None and key is not None:
        updates = [
            {"name": one.pods.name, "nodeSelector": {key: zone}}
            for one in workload.pod_sets
            if key not in (one.pods.template.spec.node_selector or {})
        ]
    more = {"podSetUpdates": updates} if updates else {}
    return [entry | more for entry in _entries(workload, ours, "Ready", why, now)]


def retry(
    workload: CheckedWorkload, ours: Collection[str], why: str, now: Micros, *, seconds: int | None = None
) -> Sequence[Entry]:
    """The entries by which Kueue takes a Workload's quota back, or keeps it out of its queue for `seconds`."""
    more = {} if seconds is None else {"requeueAfterSeconds": seconds}
    return [entry | more for entry in _entries(workload, ours, "Retry", f"{NO_ROOM} {why}", now)]


def pending(workload: CheckedWorkload, ours: Collection[str], why: str, now: Micros) -> Sequence[Entry]:
    """The entries that ask nothing more of Kueue, and say why the Workload waits."""
    return _entries(workload, ours, "Pending", f"{NO_ROOM} {why} {COMES_AGAIN}", now)


def _entries(
    workload: CheckedWorkload, ours: Collection[str], state: str, message: str, now: Micros
) -> list[dict[str, object]]:
    """The entries for all our checks: what one manager applies is all that it has to say."""
    at = to_datetime(now).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = " ".join(message.split())[:LONGEST]
    return [
        {"name": one.name, "state": state, "message": text, "lastTransitionTime": at}
        for one in our_checks(workload, ours)
    ]
