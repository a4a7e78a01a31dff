"""The helper that submits for a Slurm lab, as the process that it is in production, and a wire that loses its answers."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from fairlead_testkit.slurmlab import PEOPLE, SlurmLab
from fairlead_testkit.timing.awaiting import until


@contextlib.contextmanager
def submitting_helper(directory: Path, lab: SlurmLab) -> Iterator[Path]:
    """Runs the helper for the time of the block; gives its socket. Jobs run as the lab's people and write into the lab's `out`."""
    path, users = directory / "submit.sock", directory / "users"
    users.write_text("".join(f"{account} {user}\n" for account, user in PEOPLE.items()))
    words = [
        f"--socket={path}",
        f"--users={users}",
        "--least-uid=1",
        f"--output={lab.layout.folder}/out/%j",
        f"--slurm-conf={lab.conf}",
    ]
    process = subprocess.Popen([sys.executable, "-m", "fairlead_slurm.submitting", *words])  # noqa: S603 # our own module
    try:
        until(path.exists, 30, "the submitting helper listens")
        yield path
    finally:
        process.terminate()
        process.wait(20)


@contextlib.asynccontextmanager
async def losing_the_first_answer(directory: Path, helper: Path) -> AsyncIterator[tuple[Path, asyncio.Event]]:
    """A socket before the helper's, which keeps its first answer to itself: gives it, and what tells of that."""
    path, lost = directory / "losing.sock", asyncio.Event()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, wire = await asyncio.open_unix_connection(helper)
        wire.write(await reader.readline())
        answer = await there.readline()
        wire.close()
        if lost.is_set():
            writer.write(answer)
        else:
            lost.set()
            await reader.read()  # until whoever asked is gone
        writer.close()

    async with await asyncio.start_unix_server(pass_on, path):
        yield path, lost
