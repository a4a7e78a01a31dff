"""The socket at which hooks and jobs' processes ask. The kernel, not their words, says who asks."""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import structlog

from fairlead_slurm.batch.options import Remark
from fairlead_slurm.errors import SlurmError
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.hooks.messages import FURTHER_LINE, REQUEST, Request, results, told
from fairlead_slurm_bridge.hooks.tls import HANDSHAKE_SECONDS, TlsEndpoint
from fairlead_slurm_bridge.instruments import BridgeInstruments
from fairlead_slurm_bridge.pods.following import LastWord, PodFollower, PodOutput, UserNotice
from fairlead_slurm_bridge.pods.keeping import ResultKeeper
from fairlead_slurm_bridge.pods.lifecycle import PodLife
from fairlead_slurm_bridge.pods.results import summary
from fairlead_slurm_bridge.pods.verdicts import REQUEUE, START

_LONGEST_LINE = 2**20
_FIRST_LINE_SECONDS = 10.0
_CREDENTIALS = struct.Struct("3i")
"""Form of a caller's pid, uid and gid (SO_PEERCRED, socket(7))."""
EPILOG, EPILOG_SLURMCTLD, PROLOG, BODY, SUBMIT = "epilog", "epilog-slurmctld", "prolog", "body", "submit"
_HOOKS = frozenset((EPILOG, EPILOG_SLURMCTLD, PROLOG, BODY, SUBMIT))
_BEGINNING_SECONDS = 8.0
"""Seconds in which a bridge that was killed and has begun again leads: its last lease has three to go, and it
reads all pods."""
_LOOK_SECONDS = 0.2
_SUBMIT_SECONDS = 2.5
"""Seconds for the checks of a job in job_submit, which holds slurmctld up: later remarks are not said."""


@dataclass(eq=False)
class HookServer:
    """The gate's socket."""

    path: Path
    life: PodLife
    follower: PodFollower
    keeper: ResultKeeper
    remarks_at_once: Callable[[Sequence[str], str], Awaitable[list[Remark]]]
    """Looks at a user's job that is being submitted, by sbatch's words, without a question to slurmctld."""
    trusted: Collection[int]
    """Unix users who may be Slurm's daemons."""
    why_not: Callable[[], str | None]
    """Reason for which nothing is decided here now, if any."""
    instruments: BridgeInstruments
    hint: Callable[[], None]
    """Hears that one of Slurm's daemons asks."""
    tls: TlsEndpoint | None = None
    """The endpoint of hooks on other hosts; None where there are none."""
    _log: structlog.typing.FilteringBoundLogger = field(default_factory=structlog.get_logger, init=False)

    async def run(self) -> None:
        """Serve until cancelled. Users' processes ask here too, so anybody may connect."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, self.path, limit=_LONGEST_LINE)
        self.path.chmod(0o666)
        async with server, contextlib.AsyncExitStack() as others:
            if self.tls is not None:
                await others.enter_async_context(await self._tls_server(self.tls))
            await server.serve_forever()

    async def _tls_server(self, tls: TlsEndpoint) -> asyncio.Server:
        return await asyncio.start_server(
            lambda reader, writer: self._serve(reader, writer, tls),
            tls.host,
            tls.port,
            limit=_LONGEST_LINE,
            ssl=tls.context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
        )

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: TlsEndpoint | None = None
    ) -> None:
        began = asyncio.get_running_loop().time()
        hook, answer = "unknown", "broken"
        try:
            async with asyncio.timeout(_FIRST_LINE_SECONDS):
                user = _user(writer) if tls is None else await tls.welcome(reader, writer.write)
                request = None if user is None else REQUEST.decode(await reader.readline())
            if user is None or request is None:
                answer = "away"
            else:
                hook = request.hook if request.hook in _HOOKS else hook
                answer = await self._answer(request, user, reader, writer)
            await writer.drain()
        except (TimeoutError, msgspec.DecodeError, ValueError, KeyError) as error:
            self._log.warning("hook_not_understood", error=str(error))
        except (ConnectionError, asyncio.IncompleteReadError):
            answer = "gone"
        finally:
            self.instruments.asked(hook, answer, asyncio.get_running_loop().time() - began)
            writer.close()

    async def _answer(
        self, request: Request, user: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str:
        why = self.why_not()
        if request.hook == BODY:
            if why is not None:
                return "away"  # hanging up makes it ask again
            await self._body(request, user, reader, writer)
            return "followed"
        if user not in self.trusted:
            writer.write(told(UserNotice("only Slurm's own daemons may ask that"), LastWord(REQUEUE)))
            return "denied"
        self.hint()
        if request.hook == SUBMIT:  # the same on each bridge: it takes no room
            return await self._submit(request, writer)
        if why is not None and (why := await self._why_not_soon()) is not None:
            writer.write(told(UserNotice(why), LastWord(REQUEUE)))
            return "away"
        decide = self._prolog if request.hook == PROLOG else self._epilog
        return await decide(request, reader, writer)

    async def _why_not_soon(self) -> str | None:
        """The reason for which nothing is decided in some seconds either: a new bridge leads by then."""
        until = asyncio.get_running_loop().time() + _BEGINNING_SECONDS
        while True:
            why = self.why_not()
            if why is None or asyncio.get_running_loop().time() >= until:
                return why
            await asyncio.sleep(_LOOK_SECONDS)

    async def _prolog(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str:
        verdict = await _while_connected(reader, self.life.prologs.answer(request.env))
        if verdict is None:
            return "gone"
        writer.write(told(*([UserNotice(verdict.why)] if verdict.why else []), LastWord(verdict.code)))
        self._log.info(
            "prolog_answered", job=request.env.get("SLURM_JOB_ID"), answer=verdict.kind, why=verdict.why
        )
        return verdict.kind

    async def _submit(self, request: Request, writer: asyncio.StreamWriter) -> str:
        asked = [f"--{name}={value}" for name, value in request.job.items() if value]
        try:
            async with asyncio.timeout(_SUBMIT_SECONDS):
                remarks = await self.remarks_at_once(asked, _name_of(request.user))
        except (SlurmError, TimeoutError) as error:
            self._log.warning("batch_job_not_checked", error=str(error))
            remarks = []
        refused = any(one.refused for one in remarks)
        says = (UserNotice(one.says) for one in sorted(remarks, key=lambda one: not one.refused))
        writer.write(told(*says, LastWord(REQUEUE if refused else START)))
        return "refused" if refused else "taken"

    async def _epilog(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str:
        number = int(request.env["SLURM_JOB_ID"])
        count = request.env.get("SLURM_JOB_RESTART_COUNT")
        restarts = int(count) if count is not None else None
        if request.hook == EPILOG_SLURMCTLD and self._is_left_to_slurmd(number):
            writer.write(told(LastWord(START)))
            return "left"
        if request.hook == EPILOG and not await self._keep(request, number, reader, writer):
            return "gone"
        try:
            left = await _while_connected(reader, self.life.ending.end(number, restarts))
        except SlurmError as error:
            left = str(error)
        if request.hook == EPILOG:
            self.life.runs.slurmd_told(number, request.env.get("SLURMD_NODENAME", ""))
        writer.write(told(*([UserNotice(left)] if left else []), LastWord(START)))
        return "left" if left else "gone"

    def _is_left_to_slurmd(self, number: int) -> bool:
        """Whether slurmd's epilog takes the job's pod away: its process runs still, or it left results to move.

        Slurm runs both epilogs at once. Where slurmctld's came first and took the pod away, its results were not moved.
        """
        return self.life.processes.any_of(number) or bool(self.keeper.plans(number))

    async def _keep(
        self, request: Request, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Have the epilog move what the job's pod left; returns whether it still listens."""
        for key, pod, plan in self.keeper.plans(number):
            if not request.results:
                self._log.warning("results_not_moved", job=number, why="the hooks are older than this bridge")
                continue
            writer.write(results(plan, summary(key, pod, datetime.now(UTC))))
            async for piece in self.keeper.output(key):
                writer.write(told(PodOutput(piece)))
                await writer.drain()
            writer.write(told(PodOutput(b"")))
            answer = await reader.readline()
            if not answer:
                return False
            self._log.info(
                "results_moved", job=number, to=plan.target, summary=FURTHER_LINE.decode(answer).moved
            )
        return True

    async def _body(
        self, request: Request, user: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        stop = asyncio.Event()
        if request.stop:
            stop.set()
        listening = asyncio.create_task(_until_told(reader, stop))
        telling = asyncio.create_task(self._tell(request, user, stop, writer))
        try:
            await asyncio.wait((listening, telling), return_when=asyncio.FIRST_COMPLETED)
            if telling.done():
                await telling
        finally:
            listening.cancel()
            telling.cancel()
            await asyncio.gather(listening, telling, return_exceptions=True)

    async def _tell(
        self, request: Request, user: int, stop: asyncio.Event, writer: asyncio.StreamWriter
    ) -> None:
        number, count = request.env["SLURM_JOB_ID"], request.env.get("SLURM_RESTART_COUNT", "0")
        attempt, node = Attempt(int(number), int(count)), request.env.get("SLURMD_NODENAME", "")
        following = self.follower.follow(attempt, user, request.offset, stop, node=node)
        async with contextlib.aclosing(following) as words:
            async for word in words:
                writer.write(told(word))
                await writer.drain()


def _user(writer: asyncio.StreamWriter) -> int:
    peer: socket.socket = writer.get_extra_info("socket")
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(raw)[1]
    return user


def _name_of(user: int | None) -> str:
    """The user's name; empty where this host does not know them, whose limits are then left out."""
    import pwd

    try:
        return "" if user is None else pwd.getpwuid(user).pw_name
    except (KeyError, OverflowError):
        return ""


async def _until_told(reader: asyncio.StreamReader, stop: asyncio.Event) -> None:
    """Read until the process has gone; set `stop` once it says that it is told to end."""
    while line := await reader.readline():
        if FURTHER_LINE.decode(line).stop:
            stop.set()


async def _while_connected[T](reader: asyncio.StreamReader, work: "asyncio._CoroutineLike[T]") -> T | None:
    """The result of the work; None where its asker went away before."""
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(reader.read())
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        return await doing if doing.done() else None
    finally:
        leaving.cancel()
        doing.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


def trusted_users(names: Collection[str]) -> set[int]:
    """The Unix users of these names that this host has, with root and this process's own."""
    import pwd

    found = {0, os.geteuid()}
    for name in names:
        with contextlib.suppress(KeyError):
            found.add(pwd.getpwnam(name).pw_uid)
    return found
