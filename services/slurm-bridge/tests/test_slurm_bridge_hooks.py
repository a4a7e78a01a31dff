"""The gate's socket: answers to hooks while the bridge begins."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from fairlead_slurm_bridge.hooks.server import HookServer
from fairlead_slurm_bridge.pods.verdicts import START, PrologVerdict
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import beside


class Nothing:
    """Instruments that count nothing."""

    def asked(self, hook: str, answer: str, seconds: float) -> None:
        del hook, answer, seconds


class Keeper:
    """A keeper that finds results of some jobs."""

    def __init__(self, *jobs: int) -> None:
        self._jobs = jobs

    def plans(self, number: int) -> list[str]:
        return ["a plan"] if number in self._jobs else []


class RoomyLife:
    """A life of pods with room for all, of which no process listens any more."""

    def __init__(self) -> None:
        self.prologs = self.ending = self.processes = self
        self.ended: list[int] = []

    def any_of(self, job: int) -> bool:
        del job
        return False

    async def end(self, number: int, restarts: int | None) -> str | None:
        del restarts
        self.ended.append(number)
        return None

    async def answer(self, hook: Mapping[str, str]) -> PrologVerdict:
        assert hook["SLURM_JOB_ID"] == "7"
        return PrologVerdict(code=START, why="", kind="room")


async def answer(path: Path, hook: str, job: int = 7) -> dict[str, int]:
    reader, writer = await asyncio.open_unix_connection(path)
    request = {"hook": hook, "env": {"SLURM_JOB_ID": str(job), "SLURM_JOB_RESTART_COUNT": "0"}}
    writer.write(json.dumps(request).encode() + b"\n")
    found: dict[str, int] = json.loads(await reader.readline())
    writer.close()
    return found


@contextlib.asynccontextmanager
async def serving(
    path: Path,
    life: RoomyLife,
    *,
    keeper: object = None,
    why_not: Callable[[], str | None] = lambda: None,
) -> AsyncIterator[None]:
    """Serve on that path while the block lasts."""
    parts: list[Any] = [life, None, keeper, None, {os.geteuid()}, why_not, Nothing(), lambda: None]
    server = HookServer(path, *parts)
    async with beside(server.run()), asyncio.timeout(30):
        await eventually(path.exists, 20, what="it listens")
        yield


async def test_a_prolog_waits_for_a_bridge_that_does_not_lead_yet(tmp_path: Path) -> None:
    asked: list[str] = []

    def why_not() -> str | None:
        asked.append("whether it leads")
        return "this bridge does not lead" if len(asked) < 4 else None

    path = tmp_path / "gate"
    async with serving(path, RoomyLife(), why_not=why_not):
        assert await answer(path, "prolog") == {"exit": START}


async def test_slurmctlds_epilog_leaves_a_pod_whose_results_slurmds_has_to_move(tmp_path: Path) -> None:
    path, life = tmp_path / "gate", RoomyLife()
    async with serving(path, life, keeper=Keeper(7)):
        assert await answer(path, "epilog-slurmctld", 7) == {"exit": START}
        assert await answer(path, "epilog-slurmctld", 8) == {"exit": START}
    assert life.ended == [8], "the other has nothing to move"
