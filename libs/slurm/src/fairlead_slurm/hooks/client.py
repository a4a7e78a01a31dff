"""Asks slurm-bridge's gate on behalf of one of Slurm's hooks, or stands on a node for a job that runs as a pod.

`fairlead slurm install` writes it out as a program of its own. It runs under any Python from 3.9 on with the standard library
alone: nothing else of Fairlead has to be on Slurm's hosts. A hook is a process that lives for milliseconds, so it imports what is
built in and little else: `socket`, `signal`, `json` and `typing` each cost more than all that a hook does.

What is said, both ways, is a JSON object a line. To the gate: the hook's name and Slurm's variables. From it: `{"say": text}`,
`{"log": n}` followed by n bytes of the pod's output, and at the end `{"exit": code}`. An epilog may hear `{"results": plan}`, with
the pod's output behind it to a `{"log": 0}`; it answers `{"moved": summary}`.
"""

from __future__ import annotations  # for Pythons that Slurm's hosts have

import _socket
import os
import sys
import time
from _json import encode_basestring_ascii as quoted

TYPE_CHECKING = (
    False  # as type checkers know it: to import `typing` takes time, and before 3.11 it has no Self
)
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

SOCKET = "/run/fairlead/slurm-gate.sock"
"""Unix socket at which the gate listens. `install` writes these lines anew."""
ENDPOINTS: tuple[str, ...] = ()
"""Gates, as `HOST:PORT`, that are asked over TLS instead, each in turn until one leads."""
CA = ""
"""File of the authority that their certificates are of; the host's own authorities where it is empty."""
MUNGE = ("munge",)
"""Command that makes the credential by which those gates know who asks."""
AWAY = "requeue"
"""Word for what a prolog does while the gate is away: `requeue`, or `start` a job whose body then waits for
the gate."""
SECONDS = 280.0
"""Longest time of a hook, in seconds: less than PrologEpilogTimeout."""

SUBMIT_SECONDS = 3.0
"""Longest wait of job_submit, in seconds: slurmctld does little else meanwhile."""

REQUEUE = 1
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
RESTARTING = 6.0
"""Seconds for which a hook tries on to reach a gate that may be restarting."""
CHANGING = 10.0
"""Seconds for which a hook tries on where there are several gates: another one leads within some."""
ENDPOINT_SECONDS = 5.0
"""Seconds that one of several gates may take to say whether it leads."""
TOLD_AFTER = 1.0
RESULTS = "fairlead-results.py"
"""The program beside this one that moves results."""
FOR_THE_REST = 10.0
"""Seconds that an epilog keeps for what follows the moving of results."""
_PIECE = 65536
_STDOUT = 1


class AwayError(Exception):
    """The gate does not listen, or went away before it had answered."""


class NotReachedError(AwayError):
    """No gate that leads can be reached."""


def main(arguments: list[str]) -> int:
    """Run the hook of that name; the exit code is the hook's."""
    hook = arguments[0] if arguments else ""
    if hook == "body":
        return Body().run()
    if hook == "submit":
        return look_over(arguments[1:])
    if hook in ("prolog", "epilog", "epilog-slurmctld"):
        return ask_once(hook)
    say("no such hook: " + hook)
    return 0


def look_over(pairs: list[str]) -> int:
    """Looks over a job that is being submitted: prints `refuse` or `warn`, and why, a line each; nothing where nobody answers.

    Args:
        pairs: `OPTION=` and its value in hexadecimal digits, which no shell can misread.
    """
    try:
        given = {
            name: bytes.fromhex(value).decode("utf-8", "replace")
            for name, _, value in (one.partition("=") for one in pairs)
        }
        user = int(given.pop("user", "-1"))
        request: dict[str, object] = {"hook": "submit", "job": given, "user": user}
        with Conversation(request, time.monotonic() + SUBMIT_SECONDS) as gate:
            said: list[str] = []
            while True:
                word = gate.word()
                if "say" in word:
                    said.append(" ".join(str(word["say"]).split()))
                if "exit" in word:
                    break
    except (AwayError, OSError, ValueError) as error:
        say(f"the job is not looked over: {error}")
        return 0
    mark = "refuse" if int(str(word["exit"])) else "warn"
    os.write(_STDOUT, "".join(f"{mark} {text}\n" for text in said).encode("utf-8", "replace"))
    return 0


def say(text: str) -> None:
    """Tell whoever reads the log of Slurm, or the output of the job."""
    try:
        os.write(2, ("fairlead: " + text + "\n").encode("utf-8", "replace"))
    except OSError:
        return


def variables() -> dict[str, str]:
    """The environment's part that is Slurm's; bytes that are no UTF-8 become question marks."""
    found = {name: value for name, value in os.environ.items() if name.startswith(("SLURM_", "SLURMD_"))}
    return {name: os.fsencode(value).decode("utf-8", "replace") for name, value in found.items()}


def ask_once(hook: str) -> int:
    """The exit code of a hook: the gate's, or a set one without it. No epilog fails: that drains its node."""
    lost = time.monotonic()
    until = lost + SECONDS
    while True:
        try:
            code = answer({"hook": hook, "env": variables(), "results": hook == "epilog"}, until)
        except (AwayError, OSError, ValueError) as error:
            if not isinstance(error, NotReachedError):
                lost = time.monotonic()  # it was there until now: another one may lead in a moment
            if time.monotonic() > min(lost + (CHANGING if ENDPOINTS else RESTARTING), until):
                say(f"the gate does not answer: {error}")
                return REQUEUE if hook == "prolog" and AWAY != "start" else 0
            time.sleep(FIRST_PAUSE)
        else:
            return code if hook == "prolog" else 0


def answer(request: dict[str, object], until: float) -> int:
    """The exit code that the gate answers with."""
    with Conversation(request, until) as gate:
        while True:
            word = gate.word()
            if "say" in word:
                say(str(word["say"]))
            if "results" in word:
                plan = dict(word["results"])  # type: ignore[call-overload] # an object, by the protocol
                gate.tell({"moved": keep_results(plan, gate, until - FOR_THE_REST)})
            if "exit" in word:
                return int(str(word["exit"]))


def keep_results(plan: dict[str, object], gate: Conversation, until: float) -> object:
    """Summary of the move of a job's results, which runs as the job's own user, never as root."""
    import json
    import subprocess  # no other hook has the time for it

    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), RESULTS)  # noqa: PTH100, PTH118, PTH120 # pathlib takes long
    given = b"".join((json.dumps({**plan, "until": until}).encode() + b"\n", *_pieces(gate)))
    command = [sys.executable, "-I", "-S", program]
    try:
        user, group, groups = job_user()
        # Without root nobody can be anybody else, and need not where slurmd runs as the job's user.
        others: dict[str, Any] = (
            {} if user == os.geteuid() else {"user": user, "group": group, "extra_groups": groups}
        )
        moved = subprocess.run(  # noqa: S603 # our own program
            command,
            input=given,
            stdout=subprocess.PIPE,
            cwd="/",
            timeout=until - time.monotonic() + FOR_THE_REST / 2,
            check=True,
            **others,
        )
        found: object = json.loads(moved.stdout)
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        return {"trouble": str(error)}
    else:
        return found


def job_user() -> tuple[int, int, list[int]]:
    """The job's user with its groups, by what slurmd says of the job."""
    import pwd

    user = int(os.environ["SLURM_JOB_UID"])
    if user == 0:
        raise ValueError("results of root are not moved")
    entry = pwd.getpwuid(user)
    return user, entry.pw_gid, os.getgrouplist(entry.pw_name, entry.pw_gid)


def _pieces(gate: Conversation) -> Iterator[bytes]:
    """The pod's output, to its end."""
    while left := int(str(gate.word().get("log", 0))):
        while left:
            piece = gate.piece(left)
            left -= len(piece)
            yield piece


class Conversation:
    """A connection to the gate.

    Args:
        request: the hook's question, sent at once.
        until: end of the conversation by the monotonic clock; None for no end.
    """

    def __init__(self, request: dict[str, object], until: float | None = None) -> None:
        self._until = until
        self._rest = b""
        self._socket = connected(until)
        try:
            self._limit()
            self.tell(request)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        """Give the open conversation."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up."""
        self._socket.close()

    def tell(self, word: dict[str, object]) -> None:
        """Say something."""
        self._socket.sendall(encoded(word).encode() + b"\n")

    def word(self) -> dict[str, object]:
        """The next thing that the gate says."""
        while b"\n" not in self._rest:
            self._rest += self._read()
        line, _, self._rest = self._rest.partition(b"\n")
        return decoded(line)

    def piece(self, most: int) -> bytes:
        """Read up to so many of the bytes that follow."""
        if not self._rest:
            self._rest = self._read()
        piece, self._rest = self._rest[:most], self._rest[most:]
        return piece

    def _read(self) -> bytes:
        self._limit()
        found = self._socket.recv(_PIECE)
        if not found:
            raise AwayError("it hung up")
        return found

    def _limit(self) -> None:
        if self._until is not None:
            self._socket.settimeout(max(self._until - time.monotonic(), 0.01))


def connected(until: float | None) -> _socket.socket:
    """Connect to the gate, or over TLS to the first gate that leads.

    Raises:
        NotReachedError: no gate that leads answers.
    """
    problems = []
    for place in range(len(ENDPOINTS) or 1):
        seconds = ENDPOINT_SECONDS
        if until is not None:  # the others shall have their turn
            left = (until - time.monotonic()) / (max(len(ENDPOINTS), 1) - place)
            seconds = max(min(seconds, left), 0.01)
        try:
            return over_tls(ENDPOINTS[place], seconds) if ENDPOINTS else on_this_host(until)
        except (AwayError, OSError, ValueError) as error:
            problems.append(f"{ENDPOINTS[place]}: {error}" if ENDPOINTS else str(error))
    raise NotReachedError("; ".join(problems))


def on_this_host(until: float | None) -> _socket.socket:
    """Connect to the gate's socket on this host, where the kernel says who asks."""
    line = _socket.socket(_socket.AF_UNIX)
    try:
        if until is not None:
            line.settimeout(max(until - time.monotonic(), 0.01))
        line.connect(SOCKET)
    except BaseException:
        line.close()
        raise
    return line


def over_tls(endpoint: str, seconds: float) -> _socket.socket:
    """Connect over TLS, where the certificate shows that it is the gate, and munge says who asks."""
    import json
    import socket
    import ssl
    import subprocess  # a hook on slurmctld's host has no time for these

    until = time.monotonic() + seconds
    host, _, port = endpoint.rpartition(":")
    host = host.strip("[]")
    context = ssl.create_default_context(cafile=CA or None)
    bare = socket.create_connection((host, int(port)), timeout=seconds)
    try:
        line = context.wrap_socket(bare, server_hostname=host)
        drawn = str(_line(line, until)["challenge"])
        made = subprocess.run(  # noqa: S603 # our own words
            [*MUNGE, "--string", drawn],
            stdout=subprocess.PIPE,
            check=True,
            timeout=max(until - time.monotonic(), 0.01),
        )
        line.sendall(json.dumps({"munge": made.stdout.decode().strip()}).encode() + b"\n")
        welcomed(_line(line, until))
        line.settimeout(None)
    except subprocess.SubprocessError as error:
        bare.close()
        raise AwayError(f"no credential: {error}") from error
    except BaseException:
        bare.close()
        raise
    return line


def welcomed(word: dict[str, object]) -> None:
    """Raise AwayError where a gate's word says that another one leads."""
    if "away" in word:
        raise AwayError(str(word["away"]))


def _line(line: _socket.socket, until: float) -> dict[str, object]:
    """Read one word of the welcome, no byte further."""
    found = b""
    while not found.endswith(b"\n"):
        line.settimeout(max(until - time.monotonic(), 0.01))
        piece = line.recv(1)
        if not piece or len(found) > _PIECE:
            raise AwayError("it hung up")
        found += piece
    return decoded(found)


def encoded(value: object) -> str:
    """A word as JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(name)}: {encoded(one)}" for name, one in value.items()) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    import json  # what became of results: lists, and nothing

    return json.dumps(value)


def decoded(line: bytes) -> dict[str, object]:
    """The object in a line of JSON; `{"exit":0}`, most hooks' answer, takes no import of `json`."""
    digits = line[8:-1]
    if line.startswith(b'{"exit":') and digits.isdigit():
        return {"exit": int(digits)}
    import json  # see the module

    found: dict[str, object] = json.loads(line)
    return found


class Body:
    """The batch job's process: it lives as long as the pod, prints what the pod prints, and ends as the pod ends."""

    def __init__(self) -> None:
        self._heard = 0
        self._mute = False
        self._stopped = False
        self._gate: Conversation | None = None

    def run(self) -> int:
        """Follows the pod until it has ended; returns its exit code."""
        import signal  # no hook needs it

        for number in (signal.SIGTERM, signal.SIGUSR2, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        pause = FIRST_PAUSE
        told = False
        while True:
            try:
                return self._listen()
            except (AwayError, OSError, ValueError) as error:
                if not told and pause > TOLD_AFTER:
                    say(f"the gate does not answer, the pod goes on: {error}")
                    told = True
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _listen(self) -> int:
        request: dict[str, object] = {"hook": "body", "env": variables()}
        request.update(offset=self._heard, stop=self._stopped)
        with Conversation(request) as gate:
            self._gate = gate
            try:
                while True:
                    word = gate.word()
                    if "log" in word:
                        self._print(gate, int(str(word["log"])))
                    elif "say" in word:
                        say(str(word["say"]))
                    elif "exit" in word:
                        return int(str(word["exit"]))
            finally:
                self._gate = None

    def _print(self, gate: Conversation, left: int) -> None:
        while left:
            piece = gate.piece(left)
            left -= len(piece)
            self._heard += len(piece)
            while piece and not self._mute:
                try:
                    piece = piece[os.write(_STDOUT, piece) :]
                except OSError as error:  # a full disk is no reason to end the job
                    self._mute = True
                    say(f"the rest of the pod's output is lost: {error}")

    def _asked_to_stop(self, _number: int, _frame: object) -> None:
        """Tell the gate and wait on: the pod ends in its time, or Slurm kills this process after KillWait."""
        first, self._stopped = not self._stopped, True
        if first and self._gate is not None:
            try:
                self._gate.tell({"stop": True})
            except OSError:
                return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
