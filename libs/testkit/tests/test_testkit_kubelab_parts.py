"""Parts of a lab end, come back, and leave nothing behind; options change what Kueue does."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_testkit.kubelab import (
    GPU,
    WORKLOADS_ALONE,
    ApiError,
    KubeLab,
    furnishing,
    things,
)
from fairlead_testkit.kubelab.detached import KubeLabSupervision
from fairlead_testkit.labs.processes import born
from fairlead_testkit.pytest_plugin.kubelab_fixtures import LabFactory
from fairlead_testkit.timing.awaiting import until

pytestmark = pytest.mark.kube

CONFIGURED = replace(
    WORKLOADS_ALONE,
    requests_in_flight=5000,
    garbage_percent=200,
    kueue_config={"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}},
)


def probe(lab: KubeLab) -> str:
    """Kueue's answer to a boost that is none."""
    try:
        lab.api.create(things.workload("probe", "default", "none", {}, boost="x"), dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


def test_without_root_and_limits_kueue_runs_as_configured_and_objects_outlive_restarts(
    kube_labs: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    lab = kube_labs(CONFIGURED)
    assert "--user" in lab.process("kueue").command
    environ = Path(f"/proc/{lab.pids()['kube-apiserver']}/environ").read_text()
    assert "GOGC=200" in environ.split("\0")
    assert not Path("/etc/kueue").exists()
    assert "LessThanInitialShare" in lab.process("kueue").log  # Kueue says what it was configured with
    objects_outlive_restarts_and_gates_can_be_changed(lab)
    pids = lab.pids().values()
    assert len({os.getpgid(pid) for pid in pids} - {os.getpgid(0)}) == 1  # the group that ends with its owner
    assert len(pids) == 3
    lab.stop()
    assert not any(born(pid) for pid in pids)


def objects_outlive_restarts_and_gates_can_be_changed(lab: KubeLab) -> None:
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
    lab.until(lambda: things.condition(lab.api.get(path), "Admitted"), 60, "a workload is admitted after all")
    assert min(lab.memory().values()) > 1 << 20


@pytest.mark.timeout(400)
def test_the_detached_lab_stays_until_it_is_told_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def command_line(word: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "fairlead_testkit.kubelab", word]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert command_line("down") == (0, "No lab is up.\n")
    assert command_line("status") == (1, "No lab is up.\n")
    try:
        code, said = command_line("up")
        found = KubeLabSupervision().running()
        assert code == 0
        assert found is not None
        assert f"export KUBECONFIG={found.kubeconfig}\n" in said
        code, said = command_line("up")
        assert code == 0
        assert "is up already" in said
        assert KubeLabSupervision().running() == found
        kubectl = [str(Path(found.binaries) / "kubectl"), f"--kubeconfig={found.kubeconfig}"]
        for job in ("team-a", "team-b", "team-c"):
            example = furnishing.REPOSITORY / "deploy" / "examples" / "kueue" / f"{job}.yaml"
            subprocess.run([*kubectl, "create", "-f", str(example)], check=True, capture_output=True)

        def asked(*words: str) -> str:
            return subprocess.run([*kubectl, *words], check=True, capture_output=True, text=True).stdout

        # First: kubectl waits for what it finds when it is called, and fails where it finds nothing.
        until(lambda: len(asked("get", "workloads", "-A", "-o", "name").split()) == 3, 60, "three Workloads")
        admitted = asked("wait", "workloads", "--all", "-A", "--for=condition=Admitted", "--timeout=90s")
        assert admitted.count("condition met") == 3
    finally:
        assert command_line("down")[0] == 0
    assert not any(born(pid) for pid in found.parts.values())


OWNER = """
import sys
from pathlib import Path
from fairlead_testkit.labs.processes import Guardian, LabProcess

guardian = Guardian()
part = LabProcess("part", ["sleep", "600"], Path(sys.argv[1]), guardian).start()
print(guardian.group, part.pid, flush=True)
sys.stdin.read()
"""


def test_nothing_outlives_a_killed_owner(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert all(born(pid) for pid in pids)
        os.kill(owner.pid, signal.SIGKILL)
    until(lambda: not any(born(pid) for pid in pids), 60, "all have ended")
