"""The last writer of what a Workload is ordered by, as the API server tells it, and what of our note is believed by it."""

import msgspec
import pytest

from fairlead_contracts.frontend.marks import BASE_PRIORITY, LEVEL_WRITER, NO_PRIORITY
from fairlead_kube.kinds.workloads import (
    PRIORITY_BOOST,
    Workload,
    WorkloadMeta,
    forged_priority,
    found_priority,
    lever_owner,
)

type Fields = dict[str, object]

BOOST: Fields = {"f:metadata": {"f:annotations": {f"f:{PRIORITY_BOOST}": {}}}}
PRIORITY: Fields = {"f:spec": {"f:priority": {}}}
NOTE: Fields = {"f:metadata": {"f:annotations": {f"f:{BASE_PRIORITY}": {}}}}


def written(manager: str, fields: Fields, operation: str = "Update", subresource: str = "") -> Fields:
    return {"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields}


def owner(*managed: Fields, boost: str | None = "5") -> str:
    annotations = {} if boost is None else {PRIORITY_BOOST: boost}
    return lever_owner(
        msgspec.convert({"annotations": annotations, "managedFields": list(managed)}, WorkloadMeta)
    )


def test_who_wrote_the_boost_is_told_and_not_who_owns_it_by_a_write_to_the_status() -> None:
    """Kueue's writes to the status own each annotation, and have written none."""
    status = written("kueue-admission", BOOST, "Apply", "status")
    first = written("kueue", PRIORITY)
    applied = written("applier", BOOST, "Apply")
    assert owner(first, status, applied, written("jane", BOOST)) == "jane"
    assert owner(first, status, applied) == "applier"
    assert owner(first, status) == ""


def test_without_a_boost_it_is_who_wrote_the_priority() -> None:
    assert owner(written("kueue", PRIORITY), written("jane", BOOST), boost=None) == "kueue"
    assert owner(written("jane", {"f:status": {}}), boost=None) == ""
    assert owner() == ""


OURS = written(LEVEL_WRITER, NOTE | PRIORITY)
STATUS = written("kueue-admission", NOTE, "Apply", "status")
UNKNOWN = msgspec.UNSET


@pytest.mark.parametrize(
    ("noted", "managed", "found"),
    [
        ("50", [OURS], 50),
        ("50", [OURS, STATUS], 50),
        ("50", [OURS, written("applier", NOTE | PRIORITY, "Apply")], 50),
        ("50", [written(LEVEL_WRITER, PRIORITY), STATUS], 50),
        (NO_PRIORITY, [OURS], None),
        ("?", [OURS], 0),
        # Nobody took a note, or the priority was edited after it: what stands there is nobody's but its own.
        (None, [written(LEVEL_WRITER, PRIORITY)], UNKNOWN),
        ("50", [written(LEVEL_WRITER, NOTE), written("kubectl-edit", PRIORITY)], UNKNOWN),
        ("50", [], UNKNOWN),
    ],
)
def test_a_note_of_ours_says_what_was_found_as_long_as_our_priority_stands(
    noted: str | None, managed: list[Fields], found: int | msgspec.UnsetType | None
) -> None:
    workload = a_workload(noted, managed)
    assert found_priority(workload) == found
    assert forged_priority(workload.metadata) is None


@pytest.mark.parametrize(
    ("managed", "found"),
    [
        ([written("kueue", NOTE | PRIORITY)], UNKNOWN),
        ([written("kubectl-annotate", NOTE), STATUS], UNKNOWN),
        # It stood there before us, and says what ours would have said: so we wrote the priority alone.
        ([written("kueue", NOTE), written(LEVEL_WRITER, PRIORITY)], 0),
    ],
)
def test_nobody_has_a_priority_by_a_note_of_his_own(
    managed: list[Fields], found: int | msgspec.UnsetType
) -> None:
    workload = a_workload("2000000000", managed)
    assert found_priority(workload) == found
    assert forged_priority(workload.metadata) == "2000000000"


def a_workload(noted: str | None, managed: list[Fields]) -> Workload:
    annotations = {} if noted is None else {BASE_PRIORITY: noted}
    metadata = {"annotations": annotations, "managedFields": managed}
    return msgspec.convert({"metadata": metadata, "spec": {"priority": 700}}, Workload)
