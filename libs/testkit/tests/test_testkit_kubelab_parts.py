"""Parts of a lab end, come back, and leave nothing behind; options change what Kueue does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_testkit.kubelab import GPU, WORKLOADS_ALONE, ApiError, KubeLab, LabOptions, things
from fairlead_testkit.kubelab.processes import born, until
from fairlead_testkit.kubelab_fixtures import LabFactory

pytestmark = pytest.mark.kube


def probe(lab: KubeLab) -> str:
    """What Kueue says to a boost that is none."""
    try:
        lab.api.create(things.workload("probe", "default", "none", {}, boost="x"), dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


def test_objects_outlive_restarts_and_gates_can_be_changed(kube_labs: LabFactory) -> None:
    lab = kube_labs(WORKLOADS_ALONE)
    lab.api.apply(
        things.flavor("gpus"),
        things.cluster_queue("all", {GPU: 1}, flavor="gpus"),
        things.local_queue("main", "default", "all"),
    )
    assert "must be a valid signed integer" in probe(lab)

    lab.restart_kueue(gates={"PriorityBoost": False})
    assert probe(lab) == ""
    lab.restart_apiserver()
    lab.process("kueue").kill()
    assert "kueue" not in lab.pids()
    with pytest.raises(ApiError, match="failed calling webhook"):
        lab.api.create(things.workload("early", "default", "main", {GPU: 1}))
    lab.restart_kueue()
    lab.api.create(things.workload("one", "default", "main", {GPU: 1}))
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/one"
    lab.until(lambda: things.condition(lab.api.get(path), "Admitted"), 30, "a workload is admitted after all")
    assert min(lab.memory().values()) > 1 << 20


def test_configuration_is_passed_on_and_webhooks_can_be_left_out(kube_labs: LabFactory) -> None:
    options = LabOptions(
        workers=False,
        nodes=(),
        webhooks=False,
        requests_in_flight=5000,
        kueue_config={"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}},
    )
    lab = kube_labs(options)
    assert probe(lab) == ""
    assert '"fairSharing"' in lab.process("kueue").log or "fairSharing:" in lab.process("kueue").log


OWNER = """
import sys
from pathlib import Path
from fairlead_testkit.kubelab import WORKLOADS_ALONE, KubeLab

lab = KubeLab(WORKLOADS_ALONE, Path(sys.argv[1])).start()
print(*lab.pids().values(), flush=True)
sys.stdin.read()
lab.stop()
"""


@pytest.mark.parametrize("end", ["stop", "kill -9"])
def test_nothing_outlives_the_owner(tmp_path: Path, end: str) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 3
        if end == "kill -9":
            os.kill(owner.pid, signal.SIGKILL)
        else:
            assert owner.stdin is not None
            owner.stdin.close()
        owner.wait(30)
    until(lambda: not any(born(pid) for pid in pids), 20, "all have ended")
