"""The making of a job's pod: the job's program is found, room is kept for its pod, and the pod is created.

A pod is made by its attempt's name, so that whoever makes it again finds it; a program that runs or has run is taken over.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import structlog

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.observed import ObservedPods
from fairlead_kube.client import KubeClient
from fairlead_kube.errors import AlreadyExistsError, ForbiddenError, InvalidError, RefusedError
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from fairlead_kube.reflector import Key
from fairlead_slurm.pod_comment import PodWords, pod_words
from fairlead_slurm_bridge.errors import NotPreparedError, PodRefusedError
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.capacity import NoRoom
from fairlead_slurm_bridge.gate.kube_facts import pod_ask, pod_facts
from fairlead_slurm_bridge.pods.ending import PodEnding
from fairlead_slurm_bridge.pods.forgotten_starts import ForgottenStarts, SlurmctldJobs, is_run_of
from fairlead_slurm_bridge.pods.manifest import (
    Manifest,
    PodRules,
    claim_manifest,
    digest_of,
    on_node,
    pod_manifest,
)
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.requests import Payload, PodJob, payload, pod_job
from fairlead_slurm_bridge.pods.runs import Runs
from fairlead_slurm_bridge.pods.starting_attempts import StartingAttempts
from fairlead_slurm_bridge.pods.verdicts import REQUEUE, START, PrologVerdict


@dataclass(eq=False)
class PodMaker:
    """A maker of pods for one partition's jobs."""

    jobs: SlurmctldJobs
    client: KubeClient
    mirror: KubeMirror
    rules: PodRules
    runs: Runs
    starting: StartingAttempts
    forgotten_starts: ForgottenStarts
    ending: PodEnding
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    async def make(self, attempt: Attempt, hook: Mapping[str, str]) -> PrologVerdict:
        """The answer to a prolog: its attempt's pod is made, or was; or there is no room for it.

        Raises:
            PodRefusedError: the job can never run as a pod.
            PodCommentError: nor can one with such a comment.
            NotPreparedError: job_submit.lua has not seen the job, which is cancelled.
            SlurmError: slurmctld does not answer.
            KubeError: Kubernetes does not, or refuses.
        """
        found = await self.jobs.job(attempt.job)
        if found is None:
            return PrologVerdict(code=REQUEUE, why="slurmctld does not know the job", kind="error")
        job = pod_job(hook, found)
        if self.mirror.of_job(attempt.job) or self.runs.knows(attempt.job):
            identity = digest_of(job, await self._program(job))
            taken = await self.forgotten_starts.take_over(attempt, job.submitted, identity)
            if taken is not None:
                self.starting.settle(attempt.job)
                return taken
        return await self._where_there_is_room(job)

    async def _where_there_is_room(self, job: PodJob) -> PrologVerdict:
        wanted = pod_words(job.comment)
        key = self.rules.pod_key(job.account, job.attempt)
        ask = _ask(pod_manifest(job, wanted, Payload(script=""), self.rules))
        if await self._others_are_there(job.attempt.job, key.name):
            self.starting.send_back(job.attempt.job, ask)  # it is woken when there is room
            return PrologVerdict(code=REQUEUE, why="the pod of another attempt has to go first", kind="short")
        room = self.mirror.capacity.reserve(key, ask)
        if isinstance(room, NoRoom):
            self.starting.send_back(job.attempt.job, ask)
            return PrologVerdict(code=REQUEUE, why=room.why, kind="short")
        self.starting.making.add(key)
        kept = False
        try:
            verdict = await self._create(key, room.node, job, wanted)
            kept = verdict.code == START
            self.starting.settle(job.attempt.job)
            return verdict
        finally:
            self.starting.making.discard(key)
            if not kept and key not in self.mirror.pods:
                self.mirror.capacity.release(key)
                if wanted.scratch:
                    await self.ending.claim_is_gone(key)

    async def _others_are_there(self, job: int, own: str) -> bool:
        """Whether another attempt of the job still has a pod, which is asked to end."""
        others = [(key, pod) for key, pod in self.mirror.of_job(job).items() if key.name != own]
        for key, pod in others:
            await self.ending.remove(key, pod)
        return bool(others)

    async def _program(self, job: PodJob) -> Payload:
        program = payload(await self.jobs.script(job.attempt.job))
        if program is None:
            self._log.warning(
                "job_cancelled", job=job.attempt.job, why="job_submit.lua has not seen its script"
            )
            await self.jobs.cancel(job.attempt.job)
            raise NotPreparedError(
                "job_submit.lua has not seen its script, which would run on the node: cancelled"
            )
        if program.wants_gpus and not job.gpus:
            raise PodRefusedError(
                "it asks for GPUs in a way that says nothing of their number: ask with --gres=gpu:2"
            )
        return program

    async def _create(self, key: Key, node: str, job: PodJob, wanted: PodWords) -> PrologVerdict:
        program = await self._program(job)
        manifest = on_node(pod_manifest(job, wanted, program, self.rules), node)
        try:
            if wanted.scratch:
                claim = claim_manifest(job, wanted.scratch, self.rules)
                with suppress(AlreadyExistsError):
                    await self.client.create(PERSISTENT_VOLUME_CLAIMS, claim)
            await self.client.create(PODS, manifest)
        except AlreadyExistsError:
            return await self._adopt(key, job, digest_of(job, program))
        except (InvalidError, RefusedError) as error:
            raise PodRefusedError(f"Kubernetes does not take its pod: {error}") from error
        except ForbiddenError as error:
            # A quota that is full, or a right that somebody has to grant: neither is the user's fault.
            return PrologVerdict(code=REQUEUE, why=str(error), kind="short")
        self.runs.begins(job.attempt.job)
        self._log.info(
            "pod_made", job=job.attempt.job, restarts=job.attempt.restarts, pod=key.name, node=node
        )
        return PrologVerdict(code=START, why="", kind="room")

    async def _adopt(self, key: Key, job: PodJob, digest: str) -> PrologVerdict:
        pod = await self.client.get(PODS, key.name, key.namespace)
        facts = pod_facts(pod, self.rules.cluster)
        found = None if facts is None else facts.job
        if found is not None and not found.leaving and is_run_of(found, job.attempt, job.submitted, digest):
            return PrologVerdict(code=START, why="", kind="adopted")
        if pod.metadata.deletion_timestamp is None:
            await self.ending.delete(key, pod.metadata.uid)
        why = f"a pod of another job has the name {key.name} and is being taken away"
        return PrologVerdict(code=REQUEUE, why=why, kind="error")


def _ask(manifest: Manifest) -> ObservedPods:
    try:
        return pod_ask(msgspec.convert(manifest, Pod))
    except FieldError as error:
        raise PodRefusedError(str(error)) from error
