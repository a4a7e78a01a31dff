"""One Slurm job and its pod, as slurmctld and Kubernetes tell of them: both are played by hand."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from pathlib import Path

from aiohttp import web

from fairlead_slurm import SlurmJob
from fairlead_slurm.errors import SlurmUnreachableError
from fairlead_testkit.kubelab import KubeObject
from fairlead_testkit.processes.http_server import http_server, refusal, write_kubeconfig

type ShowPod[Pod] = Callable[[Pod | None], None]
"""Call that has the bridge see the pod so, or gone."""
type HearPod[Word] = Callable[..., Coroutine[None, None, list[Word]]]
"""Call that follows the pod to its end, and gives the words told."""


class OneJobSlurmctld:
    """A slurmctld that knows one job, with this batch script, or none. Nobody may change anything."""

    def __init__(self, script: str) -> None:
        self.known: SlurmJob | None = None
        self.answers = True
        self.asked: Callable[[], None] = lambda: None
        """Call made while it is asked for its queue."""
        self._script = script

    async def job(self, number: int) -> SlurmJob | None:
        """The job, whatever its number."""
        del number
        if not self.answers:
            raise SlurmUnreachableError("slurmctld does not answer")
        return self.known

    async def jobs(self) -> list[SlurmJob]:
        """The queue."""
        self.asked()
        return [] if self.known is None else [self.known]

    async def script(self, number: int) -> str:
        """The job's batch script."""
        del number
        return self._script

    async def requeue(self, job: str) -> None:
        """Fail the test."""
        raise AssertionError(job)

    async def wake(self, jobs: Iterable[str]) -> None:
        """Fail the test."""
        raise AssertionError(jobs)

    async def cancel(self, number: int) -> None:
        """Fail the test."""
        raise AssertionError(number)


class OnePodServer:
    """An API server with one pod: it serves the pod's log, and notes what it is asked to change.

    Args:
        path: path of the pod in its API.
        kubeconfig: file in which the way to this server is written.
    """

    def __init__(self, path: str, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.logs: list[list[bytes] | int] = [[]]
        """The next answer for each reader of the log, as pieces or a status; the last one is given again and again. Behind
        the pieces the connection breaks off, but for the last answer's."""
        self.refusals = 0
        """Number of patches and deletions that are refused before one is taken."""
        self.version = ""
        """Version of the pod: what is asked of another one is refused."""
        self.conflicts = 0
        """Number of requests for another version of the pod."""
        self.patches: list[KubeObject] = []
        self.patched: Callable[[KubeObject], None] = lambda _: None
        """Call made with each patch that is taken."""
        self.deleted = asyncio.Event()
        self._path = path

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve until the block ends."""
        async with http_server(self._answer) as host:
            write_kubeconfig(self.kubeconfig, f"http://{host}")
            yield

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        match request.method, request.path.removeprefix(self._path):
            case "GET", "/log":
                return await self._log(request)
            case "PATCH" | "DELETE", "":
                return await self._change(request)
        raise web.HTTPNotFound

    async def _log(self, request: web.Request) -> web.StreamResponse:
        answer = self.logs.pop(0) if len(self.logs) > 1 else self.logs[0]
        if isinstance(answer, int):
            return refusal(answer, "", "no kubelet")
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in answer:
            await response.write(piece)
        if self.logs[0] is not answer and request.transport is not None:
            request.transport.abort()
        return response

    async def _change(self, request: web.Request) -> web.Response:
        if self.refusals:
            self.refusals -= 1
            return refusal(503, "", "away")
        asked = await request.json()
        only = asked.get("preconditions") or asked["metadata"]
        if only.pop("resourceVersion", self.version) != self.version:
            self.conflicts += 1
            return refusal(409, "Conflict", "it has changed")
        if request.method == "DELETE":
            self.deleted.set()
        else:
            self.patches.append(asked)
            self.patched(asked)
        return web.json_response({})
