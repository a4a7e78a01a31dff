"""The gate's socket: what a hook is told while the bridge begins."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlead_slurm_bridge.hooks.server import HookServer
from fairlead_slurm_bridge.pods.verdicts import START, PrologVerdict
from fairlead_testkit.awaiting import eventually


class Nothing:
    """In place of what a prolog does not ask for."""

    def asked(self, hook: str, answer: str, seconds: float) -> None:
        del hook, answer, seconds


class Life:
    """There is room."""

    async def begin(self, hook: Mapping[str, str]) -> PrologVerdict:
        assert hook["SLURM_JOB_ID"] == "7"
        return PrologVerdict(code=START, why="", kind="room")


async def answer_to_a_prolog(path: Path) -> dict[str, int]:
    reader, writer = await asyncio.open_unix_connection(path)
    request = {"hook": "prolog", "env": {"SLURM_JOB_ID": "7"}}
    writer.write(json.dumps(request).encode() + b"\n")
    found: dict[str, int] = json.loads(await reader.readline())
    writer.close()
    return found


async def test_a_prolog_waits_for_a_bridge_that_does_not_lead_yet(tmp_path: Path) -> None:
    asked: list[str] = []

    def why_not() -> str | None:
        asked.append("whether it leads")
        return "this bridge does not lead" if len(asked) < 4 else None

    nothing: Any = Nothing()
    life: Any = Life()
    path = tmp_path / "gate"
    server = HookServer(
        path, life, nothing, nothing, nothing,
        trusted={os.geteuid()}, why_not=why_not, instruments=nothing, hint=lambda: None,
    )  # fmt: skip
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(30):
        serving = tasks.create_task(server.run())
        await eventually(path.exists, 20, what="it listens")
        assert await answer_to_a_prolog(path) == {"exit": START}
        serving.cancel()
