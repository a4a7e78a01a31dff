import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairlead_cli.errors import ProcessFailedError
from fairlead_cli.local.supervision import Program, Supervisor, describe_exit, reaper
from fairlead_testkit import eventually
from fairlead_testkit.timing.in_hand import beside

FOREVER = "import time\nwhile True: time.sleep(60)"
STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)"
PARENT = """
import asyncio, os, sys
from pathlib import Path
from fairlead_cli.local.supervision import Program, reaper, start

async def main():
    async with reaper() as held:
        for number, script in enumerate(sys.argv[2:]):
            program = Program(name=f"child-{number}", command=[sys.executable, "-c", script], environ=os.environ)
            child = await start(program, group=held.pid, logs=Path(sys.argv[1]))
            print(child.process.pid, flush=True)
        print(held.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def program(script: str, name: str = "child") -> Program:
    return Program(name=name, command=[sys.executable, "-c", script], environ=os.environ)


@asynccontextmanager
async def kept(script: str, logs: Path, said: list[str]) -> AsyncIterator[Supervisor]:
    async with reaper() as held:
        supervisor = Supervisor(group=held.pid, logs=logs, say=said.append)
        async with beside(supervisor.keep(program(script))):
            yield supervisor


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie whose new parent has not looked yet does nothing any more.
    found = subprocess.run(
        ["/bin/ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(found.stdout.strip()) and not found.stdout.startswith("Z")


async def test_a_child_that_dies_is_said_and_started_again(tmp_path: Path) -> None:
    said: list[str] = []
    async with kept(FOREVER, tmp_path, said) as supervisor:
        await eventually(lambda: "child" in supervisor.children, 40)
        first = supervisor.children["child"].process.pid
        os.kill(first, signal.SIGKILL)
        await eventually(lambda: supervisor.restarts == 1 and "child" in supervisor.children, 40)
        second = supervisor.children["child"].process.pid
    assert second != first
    assert said == [
        f"child ended with signal SIGKILL; starting it again in 0.5 s (log: {tmp_path / 'child.log'})"
    ]
    assert not is_running(second)


async def test_a_child_that_refuses_its_settings_is_not_started_again(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as raised:
        async with kept("import sys; print('port: must be a number'); sys.exit(2)", tmp_path, []):
            await asyncio.sleep(30)
    [failure] = raised.value.exceptions
    assert isinstance(failure, ProcessFailedError)
    assert "port: must be a number" in str(failure)


async def test_a_program_that_does_not_exist_is_said(tmp_path: Path) -> None:
    missing = Program(name="missing", command=["/no/such/program"], environ={})
    async with reaper() as held:
        with pytest.raises(ProcessFailedError, match="cannot be started"):
            await Supervisor(group=held.pid, logs=tmp_path, say=lambda _: None).keep(missing)


@pytest.mark.integration
def test_when_the_parent_is_killed_no_child_is_left(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path), FOREVER, STUBBORN]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as lines:
        pids = [int(lines.readline()) for _ in range(3)]
    assert all(is_running(pid) for pid in pids)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 40
    while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in pids if is_running(pid)] == []


def test_exits_are_described() -> None:
    assert describe_exit(3) == "exit code 3"
    assert describe_exit(-9) == "signal SIGKILL"
    assert describe_exit(-250) == "signal 250"


async def test_the_last_words_are_of_those_alone_that_said_something(tmp_path: Path) -> None:
    said: list[str] = []
    async with kept("print('no port is free', flush=True)\n" + FOREVER, tmp_path, said) as supervisor:
        await eventually(supervisor.last_words, what="it has said something")
        assert supervisor.last_words() == "--- child\nno port is free"
        (tmp_path / "child.log").write_text("")
        assert supervisor.last_words() == ""
        (tmp_path / "child.log").unlink()
        assert supervisor.last_words() == ""
