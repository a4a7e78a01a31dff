"""Sees how programs end, whether or not this bridge leads: the next leader has to know it where slurmctld has forgotten it."""

from fairlead_kube.reflector import Key
from fairlead_slurm_bridge.gate.kube_facts import JobPod
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.runs import NEXT, Runs

_LOOK_SECONDS = 60.0
_FAILED = 1


class Witness:
    """Follows the mirror.

    Args:
        mirror: of Kubernetes.
        runs: remembers what is seen.
    """

    def __init__(self, mirror: KubeMirror, runs: Runs) -> None:
        self._mirror = mirror
        self._runs = runs
        self._over: dict[Key, bool] = {}
        """By pod, whether it was over when it was looked at last."""

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            self.look()
            await self._mirror.change(_LOOK_SECONDS)

    def look(self) -> None:
        """Take note of pods that are new, and of those that have ended by themselves."""
        before, self._over = self._over, {key: pod.over for key, pod in self._mirror.pods.items()}
        for key, over in self._over.items():
            pod = self._mirror.pods[key]
            if over and not before.get(key) and not pod.leaving:
                saw_end(self._runs, pod)
            elif not over and key not in before and not pod.leaving:
                self._runs.begins(pod.attempt.job)


def saw_end(runs: Runs, pod: JobPod) -> None:
    """The program of this pod has ended by itself."""
    runs.ended(pod.attempt, NEXT if pod.handed_on else pod.submitted, pod.digest, code_of(pod))


def code_of(pod: JobPod) -> int:
    """What the job of a pod that is over ends with."""
    if pod.exit_code is not None:
        return pod.exit_code
    return 0 if pod.phase == "Succeeded" else _FAILED
