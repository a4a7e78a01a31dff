"""A pod as the process of its job follows it: its output, piece by piece, and its exit code."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import msgspec

from fairlead_kube.client import KubeClient
from fairlead_kube.errors import KubeError, RefusedError
from fairlead_kube.reflector import Key
from fairlead_slurm.errors import SlurmError
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.gate.kube_facts import CONTAINER, JobPod
from fairlead_slurm_bridge.pods.lifecycle import PodLife
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.programs import code_of, saw_end

NO_POD = 75
"""Exit code of a process without a pod: RequeueExit in slurm.conf puts its job back into the queue."""
STOPPED = 143
"""Exit code, 128 and SIGTERM, for a pod that was asked to end, and went before it said how."""
_FAILED = 1
_LOOK_SECONDS = 1.0
_LAST_OUTPUT_SECONDS = 10.0
_RETRY_SECONDS = 1.0
_QUEUE = 16
"""Number of pieces of output on their way at a time: a process that reads slowly holds the pod's output back,
not memory."""


class UserNotice(msgspec.Struct, frozen=True):
    """Words for the job's user."""

    text: str


class PodOutput(msgspec.Struct, frozen=True):
    """A piece of the pod's output."""

    piece: bytes


class LastWord(msgspec.Struct, frozen=True):
    """The last word to a hook or a process: its exit code."""

    code: int


type Word = UserNotice | PodOutput | LastWord


@dataclass(eq=False)
class PodFollower:
    """A follower of pods, for jobs' processes."""

    client: KubeClient
    mirror: KubeMirror
    life: PodLife

    async def follow(
        self, attempt: Attempt, user: int, skip: int, stop: asyncio.Event, *, node: str = ""
    ) -> AsyncGenerator[Word]:
        """Tell the process of an attempt all that happens to its pod, to the end.

        Args:
            attempt: the attempt whose process asks.
            user: Unix user who asks: only the job's own and root are told anything.
            skip: bytes of output that the process has printed already.
            stop: set when the pod shall end.
            node: node on which the process runs.
        """
        if attempt in self.life.starting.refusals:
            yield UserNotice(f"this job cannot run: {self.life.starting.refusals[attempt]}")
            yield LastWord(_FAILED)
            return
        again = self.life.runs.code_again(attempt)
        if again is not None:
            yield UserNotice(
                "its program has run to its end already: Slurm was killed and has forgotten that"
            )
            yield LastWord(again)
            return
        found = self.mirror.of_attempt(attempt)
        if found is None:
            for word in await self._without_pod(attempt):
                yield word
            return
        key, pod = found
        if user not in (0, pod.user):
            yield UserNotice("this is another user's job")
            yield LastWord(_FAILED)
            return
        with self.life.processes.connected(attempt):
            async for word in self._told(key, pod, skip, stop, node):
                yield word

    async def _without_pod(self, attempt: Attempt) -> list[Word]:
        """The words to a process without a pod; none where slurmctld does not answer, so that it asks again."""
        try:
            code = await self.life.forgotten_starts.code_of(attempt)
        except SlurmError:
            return []
        if code is not None:
            return [UserNotice("its program has run to its end already"), LastWord(code)]
        return [UserNotice("this attempt has no pod: the job goes back into the queue"), LastWord(NO_POD)]

    async def _told(
        self, key: Key, pod: JobPod, skip: int, stop: asyncio.Event, node: str
    ) -> AsyncGenerator[Word]:
        words: asyncio.Queue[Word | None] = asyncio.Queue(_QUEUE)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run(key, pod, skip, stop, words))
            marking = tasks.create_task(self._begin(key, pod, node, stop))
            while True:
                word = await words.get()
                if word is None:
                    marking.cancel()
                    return
                yield word

    async def _begin(self, key: Key, pod: JobPod, node: str, stop: asyncio.Event) -> None:
        if not stop.is_set():
            await self.life.programs.begin(key, pod, node)

    async def _run(
        self, key: Key, pod: JobPod, skip: int, stop: asyncio.Event, words: asyncio.Queue[Word | None]
    ) -> None:
        output = asyncio.create_task(self._output(key, pod, skip, words))
        stopping = asyncio.create_task(self._stop_when_asked(pod.attempt, stop))
        try:
            last = await self._until_over(key, pod, stop)
            if last is not None and not stop.is_set():
                saw_end(self.life.runs, last)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_OUTPUT_SECONDS):
                    await asyncio.shield(output)
            for word in _ending(last, stopped=stop.is_set()):
                await words.put(word)
            await words.put(None)
        finally:
            output.cancel()
            stopping.cancel()

    async def _until_over(self, key: Key, pod: JobPod, stop: asyncio.Event) -> JobPod | None:
        """The pod at its end; None where it vanished untold, or goes on for another attempt."""
        while True:
            now = self.mirror.pods.get(key)
            if now is None or now.uid != pod.uid or (stop.is_set() and now.attempt != pod.attempt):
                return None
            if now.over:
                return now
            await self.mirror.change(_LOOK_SECONDS)

    async def _stop_when_asked(self, attempt: Attempt, stop: asyncio.Event) -> None:
        await stop.wait()
        await self.life.ending.stop(attempt)

    async def _output(self, key: Key, pod: JobPod, skip: int, words: asyncio.Queue[Word | None]) -> None:
        """Take the container's output from `skip` on; where it breaks off, take it up again there."""
        told = ""
        while True:
            left = skip
            try:
                async with self.client.pod_log(
                    key.name, key.namespace, container=CONTAINER, follow=True
                ) as pieces:
                    async for piece in pieces:
                        fresh = piece[left:]
                        left = max(0, left - len(piece))
                        if fresh:
                            skip += len(fresh)
                            await words.put(PodOutput(fresh))
            except KubeError as error:
                now = self.mirror.pods.get(key)
                over = now is None or now.uid != pod.uid or now.over
                waits = isinstance(error, RefusedError) and not over  # its container has not begun
                if not waits and str(error) != told:
                    told = str(error)
                    await words.put(UserNotice(f"the pod's output cannot be read: {error}"))
                if over:
                    return
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return


def _ending(pod: JobPod | None, *, stopped: bool) -> list[Word]:
    if pod is None:
        if stopped:
            return [LastWord(STOPPED)]
        return [UserNotice("its pod was taken away: the job goes back into the queue"), LastWord(NO_POD)]
    code = code_of(pod)
    if code == 0:
        return [LastWord(0)]
    why = f" ({pod.reason})" if pod.reason not in ("", "Error") else ""
    return [UserNotice(f"the pod ended with {code}{why} {pod.message}".rstrip()), LastWord(code)]
