"""The life of a job's pod: room is kept for it, it is made, waited for, and taken away until it is really gone.

Everything is done by its name, so that doing it again is harmless: slurmctld starts a prolog anew after a restart, hooks are
killed at any moment, and so is this process. What it remembers by itself is only what may be lost.

`prologs` begins that life, `pod_maker` has the pod made, `programs` lets its program begin, `ending` takes it away; `starting_attempts`
is what they know together of attempts that begin.
"""

from fairlead_kube.client import KubeClient
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.ending import PodEnding
from fairlead_slurm_bridge.pods.forgotten_starts import ForgottenStarts, SlurmctldJobs
from fairlead_slurm_bridge.pods.manifest import PodRules
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.pod_maker import PodMaker
from fairlead_slurm_bridge.pods.programs import JobProcesses, WaitingPrograms
from fairlead_slurm_bridge.pods.prologs import Prologs
from fairlead_slurm_bridge.pods.runs import Runs
from fairlead_slurm_bridge.pods.starting_attempts import StartingAttempts
from fairlead_slurm_bridge.settings import SlurmBridgeSettings


class PodLife:
    """The life of pods of one partition's jobs.

    The settings say which partition that is, and the longest times of a pod's life.
    """

    def __init__(
        self,
        jobs: SlurmctldJobs,
        client: KubeClient,
        mirror: KubeMirror,
        rules: PodRules,
        runs: Runs,
        *,
        settings: SlurmBridgeSettings,
    ) -> None:
        self.runs = runs
        self.processes = JobProcesses()
        self.starting = StartingAttempts()
        self.forgotten_starts = ForgottenStarts(jobs, client, mirror, self.processes, runs)
        self.programs = WaitingPrograms(client, mirror, runs)
        self.ending = PodEnding(jobs, client, mirror, rules, self.starting, settings.pods_gone_seconds)
        shared = self.starting, self.forgotten_starts, self.ending
        maker = PodMaker(jobs, client, mirror, rules, runs, *shared)
        self.prologs = Prologs(mirror, runs, *shared, maker, settings)

    def stands_for(self, attempt: Attempt) -> bool:
        """Whether a prolog of this attempt is being answered, or its process listens."""
        return attempt in self.starting or attempt in self.processes.listening

    def stands_for_job(self, attempt: Attempt) -> bool:
        """Whether a prolog of this attempt is being answered, or a process of any attempt of its job listens."""
        return attempt in self.starting or self.processes.any_of(attempt.job)
