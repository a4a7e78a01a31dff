"""The command as a fork of a process that has imported it says what it says when it is started from nothing."""

import os
import subprocess
from pathlib import Path

import pytest

from fairlead_testkit.processes import fork_server
from fairlead_testkit.processes.command import MODULE, fairlead

SNAPSHOT = '{"now": 0, "pools": [{"name": "p", "capacity": {"cpu": 1}}], "jobs": []}'


@pytest.fixture(autouse=True)
def forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has commands run as forks, also in `make deep`, where other tests use none."""
    monkeypatch.setattr(fork_server._servers, "used", True)


def from_nothing(
    monkeypatch: pytest.MonkeyPatch, *words: str, environ: dict[str, str], given: str
) -> subprocess.CompletedProcess[str]:
    with monkeypatch.context() as without:
        without.setattr(fork_server._servers, "used", False)
        return fairlead(*words, environ=environ, given=given)


@pytest.mark.integration
@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["order", "--help"],
        ["order", "-", "--output", "json"],
        ["order", "-", "--explain", "nobody"],
        ["queue", "--nats", "nats://127.0.0.1:9"],
        ["no-such-word"],
        ["policy", "check", "/nowhere"],
    ],
)
def test_a_fork_says_what_is_said_from_nothing(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"COLUMNS": "60"}
    assert fork_server.serves_bare(MODULE, environ)
    forked = fairlead(*words, environ=environ, given=SNAPSHOT)
    plain = from_nothing(monkeypatch, *words, environ=environ, given=SNAPSHOT)
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )


@pytest.mark.integration
def test_a_fork_knows_nothing_of_the_one_before_and_ends_in_time(tmp_path: Path) -> None:
    told = {"XDG_STATE_HOME": str(tmp_path), "FAIRLEAD_NATS_URL": "nats://127.0.0.1:9"}
    assert "127.0.0.1:9" in fairlead("queue", environ=told).stderr
    unaware = fairlead("queue", environ={"XDG_STATE_HOME": str(tmp_path)})
    assert "no running Fairlead is known" in unaware.stderr
    with pytest.raises(subprocess.TimeoutExpired):
        fairlead("queue", environ=told, seconds=0.0)


def test_an_interpreter_that_is_set_up_otherwise_is_started_from_nothing() -> None:
    assert fork_server.serves_bare(MODULE, {})
    assert not fork_server.serves_bare(MODULE, os.environ | {"PYTHONHASHSEED": "7"})


@pytest.mark.integration
def test_where_the_server_is_gone_the_command_is_started_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers = fork_server._Servers()
    servers.used = True
    monkeypatch.setattr(fork_server, "_servers", servers)
    servers.next().end()
    assert fairlead("--version").returncode == 0
    servers.end()
