"""Ends of programs, recorded on each bridge: a later leader needs them where slurmctld forgot them."""

from fairlead_kube.reflector import Key
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.runs import NEXT, Runs

_LOOK_SECONDS = 60.0
_FAILED = 1


class ProgramEndRecorder:
    """A recorder of the beginnings and ends of programs that the mirror's pods show.

    Args:
        mirror: shows nodes and pods of Kubernetes.
        runs: remembers what was seen.
    """

    def __init__(self, mirror: KubeMirror, runs: Runs) -> None:
        self._mirror = mirror
        self._runs = runs
        self._over: dict[Key, bool] = {}
        """Pods since the last look, with whether they were over then."""

    async def run(self) -> None:
        """Record at each change until cancelled."""
        while True:
            self.record()
            await self._mirror.change(_LOOK_SECONDS)

    def record(self) -> None:
        """Record programs of new pods as begun, and of pods that ended by themselves as ended."""
        before, self._over = self._over, {key: pod.over for key, pod in self._mirror.pods.items()}
        for key, over in self._over.items():
            pod = self._mirror.pods[key]
            if over and not before.get(key) and not pod.leaving:
                saw_end(self._runs, pod)
            elif not over and key not in before and not pod.leaving:
                self._runs.begins(pod.attempt.job)


def saw_end(runs: Runs, pod: JobPod) -> None:
    """Note that the program of this pod has ended by itself."""
    runs.ended(pod.attempt, NEXT if pod.handed_on else pod.submitted, pod.digest, code_of(pod))


def code_of(pod: JobPod) -> int:
    """The exit code of a job whose pod is over."""
    if pod.exit_code is not None:
        return pod.exit_code
    return 0 if pod.phase == "Succeeded" else _FAILED
