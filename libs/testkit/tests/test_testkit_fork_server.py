"""Forks of a fork server are what `python -m` makes of a service: told apart by what they share, and by nothing else."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_testkit import OwnProcessError, ServiceProcess
from fairlead_testkit.labs.processes import born
from fairlead_testkit.processes import fork_server
from fairlead_testkit.processes.fork_server import ForkedProcess
from fairlead_testkit.processes.fresh_interpreter import child_running
from fairlead_testkit.pytest_plugin import plugin

SERVICE = "fairlead_forked"
"""A package of the test's own, with the files that a service has."""
APP = "LOADED = 'once'\n"
MAIN = """
import json, os, sys, time
from fairlead_forked.app import LOADED
told = {"event": "told", "arguments": sys.argv[1:], "mine": os.environ.get("FAIRLEAD_MINE"), "strange": os.environ.get("STRANGE"),
        "name": __name__, "hash": hash("a tenant"), "parent": os.getppid(), "folder": os.getcwd(), "fds": len(os.listdir("/proc/self/fd"))}
print(json.dumps(told), file=sys.stderr, flush=True)
if sys.argv[1:2] == ["end"]:
    sys.exit(int(sys.argv[2]))
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, and servers of this test alone that know where it is."""
    package = tmp_path / "src" / SERVICE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "app.py").write_text(APP)
    (package / "__main__.py").write_text(MAIN)
    inherited = os.environ.get("PYTHONPATH")
    paths = [str(tmp_path / "src"), *([inherited] if inherited else [])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setattr(fork_server, "FORKED", frozenset({SERVICE}))
    servers = fork_server._Servers()
    monkeypatch.setattr(fork_server, "_servers", servers)
    fork_server.use()
    yield
    servers.end()


def forked(folder: Path, *arguments: str, name: str = "one", **settings: object) -> ServiceProcess:
    return ServiceProcess("forked", folder, settings, arguments, name=name)


async def test_a_fork_has_the_arguments_the_environment_and_the_log_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forked(tmp_path, "--flag", mine="yes") as first:
        assert isinstance(first._process, ForkedProcess)
        told = await first.logged("told")
    assert (told["arguments"], told["mine"], told["name"]) == (["--flag"], "yes", "__main__")
    assert told["folder"] == str(Path.cwd())
    monkeypatch.setenv("STRANGE", "came later")
    with forked(tmp_path, name="two") as second, forked(tmp_path, name="three") as third:
        later = [await second.logged("told"), await third.logged("told")]
    assert [one["strange"] for one in later] == ["came later"] * 2
    assert {one["mine"] for one in later} == {None}
    assert told["fds"] == later[0]["fds"] == later[1]["fds"], "what belongs to others is closed"


def test_a_service_of_a_manifest_is_a_fork_where_its_environment_says_nothing_else_of_the_interpreter() -> (
    None
):
    assert fork_server.serves_bare(SERVICE, {"HOME": "/"})
    assert not fork_server.serves(SERVICE, {"HOME": "/"}), "ours says where bytecode is kept"
    assert not fork_server.serves_bare(SERVICE, {"PYTHONHASHSEED": "4242"})
    assert not fork_server.serves_bare("another", {"HOME": "/"})


async def test_two_that_follow_each_other_hash_strings_by_seeds_of_their_own(tmp_path: Path) -> None:
    with (
        forked(tmp_path) as one,
        forked(tmp_path, name="two") as two,
        forked(tmp_path, name="three") as three,
    ):
        first, second, third = [await each.logged("told") for each in (one, two, three)]
    assert first["hash"] != second["hash"] != third["hash"]
    assert third["parent"] in {first["parent"], second["parent"]}, "and no more servers are started than two"


async def test_workers_of_a_run_share_its_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = fork_server._servers
    addresses = fork_server.share()
    assert fork_server.share() == addresses, "and no more are started"
    parents = list[object]()
    for number in range(3):
        worker = fork_server._Servers()
        monkeypatch.setattr(fork_server, "_servers", worker)
        fork_server.use(addresses)
        if number == 2:
            run.end()  # and who comes later has servers of its own
        for name in ("one", "two"):
            with forked(tmp_path, name=f"{name}-of-{number}") as service:
                parents.append((await service.logged("told"))["parent"])
        worker.end()
    first, second, third = (set(parents[at : at + 2]) for at in (0, 2, 4))
    assert first == second
    assert (len(first), len(third), first & third) == (2, 2, set())


async def test_exit_codes_and_signals_are_those_of_the_fork(tmp_path: Path) -> None:
    with forked(tmp_path, "end", "3") as process:
        assert await process.ended() == 3
    with forked(tmp_path) as process:
        await process.logged("told")
        process.pause()
        assert process.running
        process.resume()
        process.signal(signal.SIGTERM)
        assert await process.ended() == -signal.SIGTERM
    with forked(tmp_path) as process:
        process.kill()
        assert not process.running


async def test_what_cannot_be_imported_says_so_in_its_log(tmp_path: Path) -> None:
    (tmp_path / "src" / SERVICE / "app.py").write_text("import fairlead_nowhere\n")
    with (
        forked(tmp_path) as process,
        pytest.raises(OwnProcessError, match="No module named 'fairlead_nowhere'"),
    ):
        await process.logged("told")


async def test_an_interpreter_set_up_otherwise_is_started_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = forked(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    with process:
        assert (await process.logged("told"))["parent"] == os.getpid()


async def test_servers_end_with_who_started_them(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "from pathlib import Path\n"
        "from fairlead_testkit import ServiceProcess\n"
        "from fairlead_testkit.processes import fork_server\n"
        f"fork_server.FORKED = frozenset({{{SERVICE!r}}})\n"
        "fork_server.use()\n"
        f"ServiceProcess('forked', Path({str(tmp_path)!r}), arguments=['end', '0']).start()\n"
        "print(fork_server._servers._started[0]._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    async with child_running(script) as (_, told):
        server = os.pidfd_open(int(await told.readline()))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(server, ended.set)
    try:
        async with asyncio.timeout(60):
            await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(server)
        os.close(server)


async def test_a_run_leaves_no_server_behind(tmp_path: Path) -> None:
    parents = set[int]()
    for name in ("one", "two"):
        with forked(tmp_path, "end", "0", name=name) as service:
            parents.add(int(str((await service.logged("told"))["parent"])))
            assert await service.ended() == 0
    plugin.pytest_unconfigure()
    assert len(parents) == 2
    assert not any(born(parent) for parent in parents)
    with forked(tmp_path, name="three") as third:  # also a run within a run has ended then
        assert (await third.logged("told"))["parent"] not in {os.getpid(), *parents}
