"""The helper that runs as root: takes one request, looks up whose it is, and runs sbatch as that user.

Who may ask, and which user an account's jobs run as, is root's to say; what is asked for is checked field by field. It never
runs sbatch as root. Who may ask also gets tokens for slurmctld, of their own name alone.
"""

import os
import pwd
import re
import shutil
import socket
import socketserver
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlead_slurm.commands import is_away
from fairlead_slurm.submitting.batch_job import MOST_BYTES, BatchJob, sbatch_words
from fairlead_slurm.submitting.client import Reply, TokenRequest

_PEER = struct.Struct("3i")
_TIMEOUT_SECONDS = 10.0
_TOKEN = re.compile(r"SLURM_JWT=([A-Za-z0-9_.-]+)")
_OTHERS_WRITE = 0o022


class SubmitTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms that root sets for the helper."""

    askers: frozenset[int]
    """Uids of those who may ask."""
    users: Path | None
    """File of lines `ACCOUNT USER`; an account that is not in it has the user of its own name."""
    least_uid: int
    """Users below are the system's: no job runs as one of them."""
    output: str
    """File of a job's output, in sbatch's patterns, from the folder where the job runs."""
    conf: Path | None
    """The slurm.conf of sbatch; None for where it looks itself."""
    seconds: float
    """Longest time of sbatch, in seconds."""


class NoUserError(Exception):
    """The account's jobs cannot be submitted; says why."""


def user_of(account: str, terms: SubmitTerms) -> pwd.struct_passwd:
    """The Unix user as whom an account's jobs are submitted.

    Raises:
        NoUserError: there is none, or one as whom no job may run.
    """
    name = account
    if terms.users is not None:
        if terms.users.stat().st_mode & _OTHERS_WRITE:
            raise NoUserError(f"{terms.users} may be written by others than its owner")
        lines = (line.partition("#")[0].split() for line in terms.users.read_text().splitlines())
        name = next((line[1] for line in lines if len(line) == 2 and line[0] == account), account)  # noqa: PLR2004 # account and user
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise NoUserError(f"account {account!r} has no Unix user: none is called {name!r}") from None
    if user.pw_uid == 0 or user.pw_uid < terms.least_uid:
        why = f"{name!r} has uid {user.pw_uid}, and users below {terms.least_uid} are the system's (--least-uid)"
        raise NoUserError(f"account {account!r}: its jobs are not submitted: {why}")
    if os.geteuid() not in (0, user.pw_uid):
        raise NoUserError(f"the helper does not run as root, and so submits as itself alone, not as {name!r}")
    return user


def submit(job: BatchJob, terms: SubmitTerms) -> Reply:
    """Run sbatch, as the account's user."""
    try:
        user = user_of(job.account, terms)
    except (NoUserError, OSError) as error:
        return Reply(refused=str(error))
    sbatch = shutil.which("sbatch")
    if sbatch is None:
        return Reply(away="sbatch is not installed, or not on the PATH")
    words = [sbatch, *sbatch_words(job, home=user.pw_dir, output=terms.output)]
    try:
        ended = subprocess.run(  # noqa: S603 # no shell; each word is an option with a checked value
            words,
            input=job.script.encode(),
            capture_output=True,
            cwd="/",
            env=_environment(user, terms.conf),
            timeout=terms.seconds,
            check=False,
            **_as(user),  # type: ignore[call-overload] # the names of whom it runs as
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Reply(away=f"sbatch: {error}")
    said = ended.stderr.decode(errors="replace").strip()
    number = ended.stdout.decode(errors="replace").strip().partition(";")[0]
    if ended.returncode == 0 and number.isdecimal():
        return Reply(job=number)
    return Reply(away=said[:500]) if is_away(said) else Reply(refused=_plain(said))


def token(uid: int, wanted: TokenRequest, terms: SubmitTerms) -> Reply:
    """Have a token made of whoever asks: by slurmctld, which knows this process's user by munge."""
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        return Reply(away="scontrol is not installed, or not on the PATH")
    try:
        asker = pwd.getpwuid(uid)
        ended = subprocess.run(  # noqa: S603 # no shell; a name of the system's own, and a number
            [scontrol, "token", f"username={asker.pw_name}", f"lifespan={wanted.token_seconds}"],
            capture_output=True,
            cwd="/",
            env=_environment(asker, terms.conf),
            timeout=terms.seconds,
            check=False,
        )
    except (KeyError, OSError, subprocess.TimeoutExpired) as error:
        return Reply(away=f"scontrol: {error}")
    made = _TOKEN.fullmatch(ended.stdout.decode(errors="replace").strip())
    if ended.returncode == 0 and made is not None:
        return Reply(token=made[1])
    said = ended.stderr.decode(errors="replace").strip()[:500] or f"scontrol ended with {ended.returncode}"
    return Reply(away=said) if is_away(said) else Reply(refused=f"no token: {said}")


def _token_request(line: bytes) -> TokenRequest | None:
    try:
        return msgspec.json.decode(line, type=TokenRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _as(user: pwd.struct_passwd) -> dict[str, object]:
    if os.geteuid() != 0:
        return {}
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": groups}


def _environment(user: pwd.struct_passwd, conf: Path | None) -> Mapping[str, str]:
    """The environment of sbatch, and so of the job."""
    own = {
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "SHELL": user.pw_shell,
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
    }
    return own | ({} if conf is None else {"SLURM_CONF": str(conf)})


def _plain(said: str) -> str:
    lines = [line.removeprefix("sbatch: error: ") for line in said.splitlines()]
    return "; ".join(line for line in lines if line)[:500] or "sbatch refused it and did not say why"


class _Handler(socketserver.StreamRequestHandler):
    timeout = _TIMEOUT_SECONDS
    server: "SubmitServer"

    def handle(self) -> None:
        reply = self._reply()
        self.wfile.write(msgspec.json.encode(reply) + b"\n")

    def _reply(self) -> Reply:
        _, uid, _ = _PEER.unpack(self.request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        line = self.rfile.readline(MOST_BYTES + 1)  # what is left unread would cost the asker the answer
        if uid not in self.server.terms.askers:
            return Reply(refused=f"uid {uid} may not ask for jobs of others")
        if len(line) > MOST_BYTES:
            return Reply(refused=f"the job is larger than {MOST_BYTES} bytes")
        wanted = _token_request(line)
        if wanted is not None:
            return token(uid, wanted, self.server.terms)
        try:
            job = msgspec.json.decode(line, type=BatchJob)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return Reply(refused=f"the job cannot be read: {error}")
        return submit(job, self.server.terms)


class SubmitServer(socketserver.ThreadingUnixStreamServer):
    """The helper's server on a Unix socket.

    Args:
        path: path of the socket; one that is left from before is replaced.
        terms: terms that root has set.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: Path, terms: SubmitTerms) -> None:
        self.terms = terms
        path.unlink(missing_ok=True)
        super().__init__(str(path), _Handler)
        # Whoever asks is known by the kernel's word; the file itself keeps nobody out.
        path.chmod(0o666)
