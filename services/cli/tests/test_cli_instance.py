import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_cli.client.instance import RunningInstance, find_url, forget, recall, remember, state_directory
from fairlead_cli.errors import InputError, NotRunningError

HERE = RunningInstance(url="nats://127.0.0.1:1", pid=os.getpid(), store="/x")


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_running_instance_is_found_without_being_told(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    remember(state_directory(environ), HERE)
    assert find_url(None, environ) == HERE.url
    assert find_url("nats://stated:2", environ) == "nats://stated:2"


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    directory = tmp_path / "new"
    remember(directory, HERE)
    assert next(directory.iterdir()).stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700


def test_an_instance_that_has_ended_is_said(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    with pytest.raises(NotRunningError, match="no running"):
        find_url(None, environ)
    remember(state_directory(environ), RunningInstance(url="nats://gone:1", pid=ended_pid(), store="/x"))
    with pytest.raises(NotRunningError, match="has ended"):
        find_url(None, environ)


def test_only_the_own_word_is_taken_away(tmp_path: Path) -> None:
    remember(tmp_path, HERE)
    forget(tmp_path, HERE.pid + 1)
    assert recall(tmp_path) == [HERE]
    forget(tmp_path, HERE.pid)
    assert recall(tmp_path) == []


def test_of_two_that_run_none_is_guessed_and_the_other_is_found_when_one_ends(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    directory = state_directory(environ)
    other = RunningInstance(url="nats://me:secret@127.0.0.1:2", pid=os.getppid(), store="/y")
    remember(directory, HERE)
    remember(directory, other)
    with pytest.raises(InputError, match="2 Fairleads run here") as asked:
        find_url(None, environ)
    assert asked.value.problems == [
        "--nats nats://127.0.0.1:1  (store /x)",
        "--nats nats://127.0.0.1:2  (store /y)",
    ]
    assert find_url(other.url, environ) == other.url
    # As it is written there, without the password that nobody else shall see.
    assert find_url("nats://127.0.0.1:2", environ) == other.url
    forget(directory, other.pid)
    assert find_url(None, environ) == HERE.url
    assert find_url("nats://127.0.0.1:2", environ) == "nats://127.0.0.1:2"


def test_what_a_killed_instance_left_is_in_nobodys_way(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    killed = RunningInstance(url="nats://gone:1", pid=ended_pid(), store="/x")
    remember(state_directory(environ), killed)
    remember(state_directory(environ), HERE)
    assert recall(state_directory(environ)) == [HERE]
    assert find_url(None, environ) == HERE.url


def test_a_broken_file_is_no_instance(tmp_path: Path) -> None:
    (tmp_path / "running.7.json").write_text("{")
    assert recall(tmp_path) == []


def test_without_a_home_in_the_environment_the_users_own_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_directory({"HOME": "/home/x"}) == Path("/home/x/.local/state/fairlead")
    monkeypatch.delenv("HOME")
    assert state_directory({}) == Path.home() / ".local" / "state" / "fairlead"


def test_a_user_without_any_home_gets_a_private_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    assert state_directory({}).name == f"fairlead-{os.getuid()}"
