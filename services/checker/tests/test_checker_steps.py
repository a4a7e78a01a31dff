"""The next step of a Workload, by what stands in it."""

import msgspec
import pytest

from fairlead_checker.facts import CheckedWorkload, checked
from fairlead_checker.steps import RESET, CheckStep, step_of
from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_kube.kinds.objects import instant
from fairlead_kube.kinds.workloads import Workload

NOW: Micros = instant("2026-11-22T12:00:00Z")
OURS = {"gang-fit"}
QUOTA = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-11-22T11:59:00Z"}
NO_QUOTA = {**QUOTA, "status": "False"}
EVICTED = {"type": "Evicted", "status": "True", "reason": "AdmissionCheck"}
OVER = {"type": "Finished", "status": "True"}


def workload(
    *conditions: dict[str, str],
    state: str = "Pending",
    message: str = "",
    name: str = "gang-fit",
    at: str = "2026-11-22T11:59:58Z",
    requeue_at: str | None = None,
) -> CheckedWorkload | None:
    found = {
        "metadata": {"name": "w", "namespace": "a", "uid": "u", "resourceVersion": "7"},
        "status": {
            "conditions": list(conditions),
            "admissionChecks": [{"name": name, "state": state, "message": message, "lastTransitionTime": at}],
            "requeueState": {"requeueAt": requeue_at},
        },
    }
    return checked(msgspec.convert(found, Workload))


LATER, EARLIER = "2026-11-22T12:00:30Z", "2026-11-22T11:59:59Z"


@pytest.mark.parametrize(
    ("found", "step"),
    [
        pytest.param(workload(QUOTA), CheckStep.ANSWER, id="it has quota and waits for us"),
        pytest.param(workload(NO_QUOTA), CheckStep.NONE, id="no word before the quota: it would be overwritten"),
        pytest.param(workload(QUOTA, name="theirs"), CheckStep.NONE, id="somebody else's check"),
        pytest.param(workload(QUOTA, state="Ready"), CheckStep.HOLD, id="let through"),
        pytest.param(workload(QUOTA, state="Retry"), CheckStep.NONE, id="Kueue's turn: to evict"),
        pytest.param(workload(QUOTA, EVICTED, message=RESET), CheckStep.SEND_AWAY, id="evicted, still with quota"),
        pytest.param(workload(NO_QUOTA, EVICTED, message=RESET), CheckStep.SEND_AWAY, id="evicted"),
        pytest.param(
            workload(NO_QUOTA, EVICTED, message=RESET, requeue_at=EARLIER), CheckStep.SEND_AWAY, id="an older time is over"
        ),
        pytest.param(workload(NO_QUOTA, EVICTED, state="Retry"), CheckStep.NONE, id="Kueue's turn: to note the time"),
        pytest.param(
            workload(NO_QUOTA, EVICTED, state="Retry", requeue_at=LATER), CheckStep.SETTLE, id="the time is noted"
        ),
        pytest.param(
            workload(NO_QUOTA, EVICTED, state="Retry", at="2026-11-22T11:59:00Z"), CheckStep.SETTLE,
            id="never noted: Retry would keep it out for ever",
        ),
        pytest.param(
            workload(NO_QUOTA, state="Retry", at="2026-11-22T11:59:00Z"), CheckStep.SETTLE, id="Retry without quota"
        ),
        pytest.param(workload(NO_QUOTA, EVICTED, requeue_at=LATER), CheckStep.AWAIT, id="out of its queue"),
        pytest.param(workload(NO_QUOTA, EVICTED, requeue_at=EARLIER), CheckStep.NONE, id="its time is up"),
        pytest.param(workload(QUOTA, state="Rejected"), CheckStep.NONE, id="rejected by hand"),
    ],
)  # fmt: skip
def test_the_next_step_follows_from_what_stands(found: CheckedWorkload, step: CheckStep) -> None:
    assert step_of(found, OURS, NOW) is step
    assert found.version == "7"


def test_what_is_over_or_has_no_checks_is_not_kept() -> None:
    assert workload(QUOTA, OVER) is None
    assert checked(Workload()) is None


def test_a_time_that_is_up_is_up_to_the_second() -> None:
    out = workload(NO_QUOTA, EVICTED, requeue_at=LATER)
    assert out is not None
    assert step_of(out, OURS, NOW + 29 * SECOND) is CheckStep.AWAIT
    assert step_of(out, OURS, NOW + 30 * SECOND) is CheckStep.NONE
