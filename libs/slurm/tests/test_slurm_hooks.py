"""Files of `fairlead slurm install`, run as written: the client, and the Lua part where there is Lua."""

import json
import os
import pwd
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from fairlead_slurm.hooks.installing import PROGRAM, HookSettings, conf_lines, hook_files
from fairlead_slurm.hooks.slurm_conf import missing_lines

type GateAnswer = Callable[[dict[str, object], socket.socket], None]


def settings(where: Path, /, **more: object) -> HookSettings:
    words = {
        "folder": str(where),
        "partition": "pods",
        "socket": str(where / "gate.sock"),
        "python": sys.executable,
    }
    return HookSettings(**{**words, **more})  # type: ignore[arg-type] # passed on


class ScriptedGate:
    """A gate that answers one connection after the other, as it is told."""

    def __init__(self, path: Path, *answers: GateAnswer) -> None:
        self.asked: list[dict[str, object]] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._answers = answers
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            connection, _ = self._socket.accept()
            with connection:
                line = line_of(connection)
                self.asked.append(json.loads(line))
                answer(self.asked[-1], connection)
        self._socket.close()


def line_of(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as file:
        return file.readline()


def says(*words: dict[str, object] | bytes) -> GateAnswer:
    def answer(_request: dict[str, object], connection: socket.socket) -> None:
        for word in words:
            connection.sendall(word if isinstance(word, bytes) else json.dumps(word).encode() + b"\n")

    return answer


@pytest.fixture
def folder() -> Iterator[Path]:
    import tempfile

    with tempfile.TemporaryDirectory() as name:  # a socket's path is at most 107 bytes long
        yield Path(name)


def installed(folder: Path, **more: object) -> Path:
    for name, file in hook_files(settings(folder, **more)).items():
        (folder / name).write_text(file.text)
        (folder / name).chmod(0o755)
    return folder


def start(
    folder: Path, hook: str, *, python: str = sys.executable, **environ: str
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [python, "-I", "-S", str(folder / PROGRAM), hook],
        env={"SLURM_JOB_ID": "7", **environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(process: subprocess.Popen[bytes]) -> int:
    process.communicate(timeout=30)
    return process.returncode


def test_a_prolog_ends_with_the_gates_code(folder: Path) -> None:
    gate = ScriptedGate(folder / "gate.sock", says({"say": "no room"}, {"exit": 1}))
    ran = subprocess.run(
        [installed(folder) / "prolog-slurmctld"],
        env={"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "it's $(id)\n"},
        capture_output=True, check=False, timeout=30,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (1, b"fairlead: no room\n")
    assert gate.asked[0]["hook"] == "prolog"
    assert gate.asked[0]["env"] == {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "it's $(id)\n"}


@pytest.mark.parametrize(("hook", "site", "asked", "code"), [
    ("prolog-slurmctld", 0, True, 1),
    ("prolog-slurmctld", 3, False, 3),
    ("epilog", 0, True, 0),
    ("epilog", 3, True, 3),
    ("epilog-slurmctld", 3, True, 3),
])  # fmt: skip
def test_a_hook_of_the_sites_own_runs_first_and_its_failure_counts(
    folder: Path, hook: str, site: int, asked: bool, code: int
) -> None:
    gate = ScriptedGate(folder / "gate.sock", says({"exit": 1}))
    own = installed(folder) / f"{hook}.site"
    own.write_text(f"#!/bin/sh\necho $SLURM_JOB_ID > {folder}/ran\nexit {site}\n")
    own.chmod(0o755)
    ran = subprocess.run([folder / hook], env={"SLURM_JOB_ID": "7"}, check=False, timeout=30)
    assert ran.returncode == code
    assert (folder / "ran").read_text() == "7\n"
    assert bool(gate.asked) == asked


def test_nobody_listens(folder: Path) -> None:
    """No gate listens; each hook waits for one that may be restarting, side by side they do so at once."""
    hooks = []
    for away, hook, code in (("requeue", "prolog", 1), ("start", "prolog", 0), ("requeue", "epilog", 0)):
        own = folder / f"{away}-{hook}"
        own.mkdir()
        hooks.append((start(installed(own, away=away), hook), code))
    for hook_of, code in hooks:
        _, errors = hook_of.communicate(timeout=30)
        assert hook_of.returncode == code
        assert b"does not answer" in errors


def test_an_epilog_never_fails(folder: Path) -> None:
    ScriptedGate(folder / "gate.sock", says({"say": "it did not end"}, {"exit": 1}))
    assert ended(start(installed(folder), "epilog")) == 0


SYSTEM_PYTHON = Path("/usr/bin/python3")
"""Python that every user may run, unlike that of a checkout below somebody's home."""


@pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason="a Python that other users may run is needed")
def test_an_epilog_moves_results_as_the_jobs_user_and_tells_what_became_of_them(folder: Path) -> None:
    told: list[bytes] = []
    source, target = folder / "out", folder / "results"
    source.mkdir()
    (source / "score").write_text("0.93")

    def answer(_request: dict[str, object], connection: socket.socket) -> None:
        plan = {"from": str(source), "to": str(target), "summary": {"job": 7}}
        connection.sendall(json.dumps({"results": plan}).encode() + b'\n{"log": 3}\nout{"log": 0}\n')
        told.append(line_of(connection))
        connection.sendall(b'{"exit": 0}\n')

    gate = ScriptedGate(folder / "gate.sock", answer)
    user = pwd.getpwnam("games") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    for path in (folder, source):
        os.chown(path, user.pw_uid, user.pw_gid)
    epilog = start(installed(folder), "epilog", python=str(SYSTEM_PYTHON), SLURM_JOB_UID=str(user.pw_uid))
    assert ended(epilog) == 0
    assert gate.asked[0]["results"] is True
    [moved] = [json.loads(line)["moved"] for line in told]
    assert (moved["job"], moved["results"]["files"]) == (7, 1)
    assert {path.stat().st_uid for path in (target, *target.iterdir())} == {user.pw_uid}
    assert (target / "fairlead-output.log").read_text() == "out"


def test_results_of_root_are_not_moved(folder: Path) -> None:
    told: list[bytes] = []

    def answer(_request: dict[str, object], connection: socket.socket) -> None:
        connection.sendall(b'{"results": {"to": "/", "summary": {}}}\n{"log": 0}\n')
        told.append(line_of(connection))
        connection.sendall(b'{"exit": 0}\n')

    ScriptedGate(folder / "gate.sock", answer)
    assert ended(start(installed(folder), "epilog", SLURM_JOB_UID="0")) == 0
    assert json.loads(told[0])["moved"] == {"trouble": "results of root are not moved"}


def test_a_gate_that_restarts_is_asked_again(folder: Path) -> None:
    gate = ScriptedGate(folder / "gate.sock", says(), says({"exit": 0}))
    assert ended(start(installed(folder), "prolog")) == 0
    assert len(gate.asked) == 2


def test_a_body_prints_each_byte_once_whatever_happens_to_the_gate(folder: Path) -> None:
    first, second = b'a\xff\x00{"exit": 9}\n', b"tail"
    gate = ScriptedGate(
        folder / "gate.sock",
        says({"log": len(first) + 5}, first),  # it breaks off in the middle of a piece
        says({"log": len(second)}, second, {"say": "the pod ended with 3"}, {"exit": 3}),
    )
    body = start(installed(folder), "body", SLURM_RESTART_COUNT="2")
    out, errors = body.communicate(timeout=30)
    assert (body.returncode, out) == (3, first + second)
    assert errors == b"fairlead: the pod ended with 3\n"
    assert [request["offset"] for request in gate.asked] == [0, len(first)]


def test_a_body_that_is_told_to_end_passes_it_on_and_waits(folder: Path) -> None:
    told: list[bytes] = []
    listening = threading.Event()

    def answer(_request: dict[str, object], connection: socket.socket) -> None:
        listening.set()
        told.append(line_of(connection))
        connection.sendall(b'{"exit": 143}\n')

    ScriptedGate(folder / "gate.sock", answer)
    body = start(installed(folder), "body")
    assert listening.wait(30)
    time.sleep(0.2)  # from its first word to its reading the answer
    body.send_signal(signal.SIGTERM)
    assert ended(body) == 143
    assert json.loads(told[0]) == {"stop": True}


def test_slurms_keys_are_checked_one_by_one(folder: Path) -> None:
    wanted = settings(folder)
    has = {key.lower(): value for key, value in conf_lines(wanted).items()}
    assert missing_lines(wanted, has) == {}
    assert missing_lines(wanted, has | {"requeueexit": "0"}) == {"RequeueExit": "0,75"}
    assert (
        missing_lines(wanted, has | {"requeueexit": "42,75", "killwait": "90", "jobsubmitplugins": "all,lua"})
        == {}
    )
    assert missing_lines(wanted, has | {"killwait": "30"}) == {"KillWait": "60"}


@pytest.mark.parametrize("changes", [
    {"partition": 'a"b'}, {"folder": "relative"}, {"folder": "/a b"}, {"python": "/usr/bin/python3\nid"},
    {"away": "maybe"}, {"variables": ["A-B"]}, {"endpoints": ["host"]}, {"endpoints": ["a b:1"]}, {"tokens": "gpu"}, {"authority": "ca"},
])  # fmt: skip
def test_what_cannot_be_written_down_safely_is_refused(folder: Path, changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        settings(folder, **changes)


def test_quotes_in_a_path_stay_in_it(folder: Path) -> None:
    text = hook_files(settings(folder, python="/opt/it's/python"))["prolog-slurmctld"].text
    parsed = subprocess.run(["sh", "-n"], input=text.encode(), check=False)  # noqa: S607 # any shell
    assert parsed.returncode == 0
    assert "'/opt/it'\"'\"'s/python'" in text


def test_a_job_is_looked_over_before_it_stands(folder: Path) -> None:
    gate = ScriptedGate(
        folder / "gate.sock",
        says({"say": "5 gpu:\nno node"}, {"say": "é"}, {"exit": 1}),
        says({"say": "a label"}, {"exit": 0}),
        says({"exit": 0}),
        says(),
    )
    program = installed(folder) / PROGRAM
    pairs = {"job-name": "it's \n$(id)", "partition": "pods", "user": "1000"}
    words = [f"{name}={text.encode().hex()}" for name, text in pairs.items()]
    for wanted in ("refuse 5 gpu: no node\nrefuse é\n", "warn a label\n", "", ""):
        ran = subprocess.run(
            [sys.executable, "-I", "-S", program, "submit", *words],
            capture_output=True,
            check=True,
            timeout=30,
        )
        assert ran.stdout.decode() == wanted
    job = {"job-name": "it's \n$(id)", "partition": "pods"}
    assert gate.asked[0] == {"hook": "submit", "job": job, "user": 1000}
    nobody = subprocess.run(
        [sys.executable, "-I", "-S", program, "submit", "job-name=x"], capture_output=True, check=True
    )
    assert nobody.stdout == b""
    assert b"not looked over" in nobody.stderr


def test_hooks_import_little(folder: Path) -> None:
    ScriptedGate(folder / "gate.sock", says(b'{"exit":0}\n'))
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", installed(folder) / PROGRAM, "prolog"],
        env={"SLURM_JOB_ID": "7"}, capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.decode().splitlines()}
    assert "_socket" in imported
    assert not {"socket", "json", "typing", "enum", "re", "signal"} & imported


class Authority:
    """Authority for the certificates of gates that listen for other hosts."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self.file = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(self.file)

    def context(self, *names: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*names).configure_cert(context)
        return context


class RemoteGate(ScriptedGate):
    """A gate over TLS; each of its answers comes behind a welcome."""

    def __init__(self, context: ssl.SSLContext, *answers: GateAnswer, away: str = "") -> None:
        self.asked = []
        self.credentials: list[str] = []
        self._context = context
        self._away = away
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._answers = answers
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            bare, _ = self._socket.accept()
            try:
                with self._context.wrap_socket(bare, server_side=True) as line:
                    self._one(line, answer)
            except OSError:
                continue  # whoever asked does not trust the certificate
        self._socket.close()

    def _one(self, line: socket.socket, answer: GateAnswer) -> None:
        line.sendall(b'{"challenge": "drawn"}\n')
        self.credentials.append(json.loads(line_of(line))["munge"])
        line.sendall(json.dumps({"away": self._away} if self._away else {}).encode() + b"\n")
        if not self._away:
            self.asked.append(json.loads(line_of(line)))
            answer(self.asked[-1], line)


@pytest.fixture
def munge(folder: Path) -> Path:
    """A program called munge that makes a credential of anything."""
    program = folder / "munge"
    program.write_text('#!/bin/sh\nprintf "MUNGE:%s:\\n" "$2"\n')
    program.chmod(0o755)
    return folder


def remote(folder: Path, authority: Authority, *endpoints: str, **more: object) -> Path:
    found = installed(folder, endpoints=endpoints, authority=str(authority.file), **more)
    program = found / PROGRAM
    program.write_text(program.read_text().replace("MUNGE = ('munge',)", f"MUNGE = ('{folder}/munge',)"))
    return found


def nobody_there() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_of_several_gates_each_is_asked_until_one_leads(folder: Path, munge: Path) -> None:
    authority = Authority(folder)
    standby = RemoteGate(authority.context("127.0.0.1"), says(), away="it does not lead")
    leader = RemoteGate(authority.context("127.0.0.1"), says({"say": "no room"}, {"exit": 1}))
    where = remote(munge, authority, nobody_there(), standby.endpoint, leader.endpoint)
    prolog = start(where, "prolog", SLURM_JOB_NAME="it's $(id)\n")
    _, errors = prolog.communicate(timeout=30)
    assert (prolog.returncode, errors) == (1, b"fairlead: no room\n")
    assert standby.credentials == leader.credentials == ["MUNGE:drawn:"], "over the word that it drew"
    assert leader.asked[0]["env"] == {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "it's $(id)\n"}


@pytest.mark.parametrize("trusted", [True, False])
def test_a_gate_is_known_by_its_certificate(folder: Path, munge: Path, trusted: bool) -> None:
    authority = Authority(folder)
    stranger = trustme.CA()
    context = authority.context("another.example")
    if not trusted:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        stranger.issue_cert("127.0.0.1").configure_cert(context)
    gate = RemoteGate(context, *[says({"exit": 0})] * 50)
    where = remote(munge, authority, gate.endpoint)
    asked = subprocess.run(
        [sys.executable, "-I", "-S", where / PROGRAM, "submit", f"job-name={b'x'.hex()}"],
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert b"not looked over" in asked.stderr
    assert b"certificate" in asked.stderr.lower()
    assert gate.credentials == [], "nobody is told who asks"


def test_a_body_asks_the_next_gate_where_one_is_killed(folder: Path, munge: Path) -> None:
    authority = Authority(folder)
    first = RemoteGate(authority.context("127.0.0.1"), says({"log": 4}, b"one\n"))  # and hangs up
    second = RemoteGate(authority.context("127.0.0.1"), says({"log": 4}, b"two\n", {"exit": 3}))
    body = start(remote(munge, authority, first.endpoint, second.endpoint), "body")
    out, _ = body.communicate(timeout=60)
    assert (body.returncode, out) == (3, b"one\ntwo\n")
    assert second.asked[0]["offset"] == 4
