"""A real Slurm on loopback, as plain processes of Debian's packages: no container, no systemd, nothing left behind."""

import contextlib
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from fairlead_testkit.labs.processes import Lab, LabProcess
from fairlead_testkit.slurmlab import configuration
from fairlead_testkit.slurmlab.configuration import SlurmLabPaths, SlurmPorts
from fairlead_testkit.slurmlab.errors import SlurmCommandError
from fairlead_testkit.slurmlab.options import CLUSTER, OPERATOR, URGENT, SlurmOptions
from fairlead_testkit.slurmlab.packages import ensure, program
from fairlead_testkit.timing.awaiting import until

READY_SECONDS = 90.0
"""Seconds for each part to become ready: it takes a few; a busy machine takes longer. Only spent on failure."""
COMMAND_SECONDS = 60.0
MUNGED, MARIADB, SLURMDBD, SLURMCTLD = "munged", "mariadbd", "slurmdbd", "slurmctld"
BACKUP = "slurmctld-backup"
SLURMRESTD, SLURMRESTD_SOCKET = "slurmrestd", "slurmrestd-socket"
_REST_VERSIONS = "openapi/v0.0.38,openapi/dbv0.0.38"
_ELSEWHERE = 'hostname "$1"; mount --bind "$2" /etc/hosts; mount -t tmpfs none "$3"; shift 3; exec "$@"'
"""Script of a shell in namespaces of its own, with another host's name and addresses, and another folder for files of
pids."""
_OPERATING = ["setpriv", f"--reuid={OPERATOR}", f"--regid={OPERATOR}", "--clear-groups"]
"""slurmrestd refuses to run as root or as SlurmUser. At its socket it acts for its own user, and for nobody else."""


class SlurmLab(Lab):
    """The Slurm lab: munged, slurmctld and some slurmd; as root also MariaDB, slurmdbd and slurmrestd with an account tree.

    Args:
        directory: folder for data and logs, kept; by default a temporary one, removed at the end.
    """

    def __init__(self, options: SlurmOptions | None = None, directory: Path | None = None) -> None:
        super().__init__(directory, "slurmlab-")
        self.options = options or SlurmOptions()
        self.layout = SlurmLabPaths(self._folder)
        self.ports = SlurmPorts.free(self.options.nodes)

    # --- start and end

    def _bring_up(self) -> None:
        """Start part after part, until every node is idle.

        Raises:
            SlurmMissingError: a package is missing.
        """
        ensure(accounting=self.options.accounting)
        self._write_files()
        self._start_munged()
        if self.options.accounting:
            self._start_database()
        self._start_slurmctld()
        if self.options.accounting:
            self._load_accounts()
        self._start_nodes()
        if self.options.rest:
            self._start_rest()

    def stop(self) -> None:
        """End every process of the lab; a temporary folder goes too."""
        self._end_jobs()
        for name in reversed(self._processes):
            self._processes[name].end()
        self._end_jobs()
        self._processes.clear()
        super().stop()

    # --- use

    @property
    def conf(self) -> Path:
        """The lab's slurm.conf, for SLURM_CONF."""
        return self.layout.conf

    @property
    def environ(self) -> dict[str, str]:
        """The environment in which Slurm's commands find this lab."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH"))}
        return kept | {"SLURM_CONF": str(self.conf)}

    def run(self, *command: str, user: str | None = None, given: str | None = None) -> str:
        """A command's standard output; run as the user of that name, where one is given.

        Raises:
            SlurmCommandError: the command failed; carries what it wrote.
        """
        before = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        ran = subprocess.run(  # noqa: S603 # a test's own words, never through a shell
            [*before, program(command[0]), *command[1:]],
            env=self.environ,
            cwd=self.layout.folder / "out",
            input=given or "",
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if ran.returncode != 0:
            raise SlurmCommandError(f"{' '.join(command[:3])} ended with {ran.returncode}: {ran.stderr}")
        return ran.stdout

    def answers(self) -> bool:
        """Whether slurmctld answers."""
        try:
            return "UP" in self.run("scontrol", "ping")
        except SlurmCommandError:
            return False

    def submit(self, account: str, *words: str, seconds: float = 3600, user: str | None = None) -> str:
        """Submit a job that sleeps; returns its number. `words` are sbatch's own."""
        script = f"#!/bin/sh\nexec sleep {seconds:g}\n"
        return self.run(
            "sbatch",
            "--parsable",
            "--output=/dev/null",
            f"--account={account}",
            *words,
            user=user,
            given=script,
        ).strip()

    def jobs(self, form: str = "%i", *words: str) -> list[str]:
        """Lines of squeue, one a task."""
        return self.run("squeue", "-h", "-r", "-o", form, *words).splitlines()

    def fill(self, account: str, *words: str) -> list[str]:
        """Submit a job for each node that takes it whole, and return when all of them run; gives their numbers."""
        whole = ("--nodes=1", "--ntasks=1", f"--gres=gpu:{self.options.gpus}")
        jobs = [self.submit(account, *whole, *words) for _ in range(self.options.nodes)]
        self.until(lambda: len(self.jobs("%i", "--states=RUNNING")) >= len(jobs), "the nodes are full")
        return jobs

    def until[T](self, condition: Callable[[], T | None], what: str, seconds: float = READY_SECONDS) -> T:
        """Ask until the condition is true; slurmctld has to live meanwhile."""
        return until(condition, seconds, what, self._processes[SLURMCTLD])

    def clear(self) -> None:
        """Cancel every job and return when all nodes are idle: tests of one run share a lab."""
        # Without the task of an array, and the part of a heterogeneous job.
        numbers = {re.split(r"[_+]", line)[0] for line in self.jobs()}
        if numbers:
            self.run("scancel", *numbers)
        self.until(lambda: not self.jobs(), "every job has ended")
        self._until_idle()

    # --- parts

    def _write_files(self) -> None:
        layout, options = self.layout, self.options
        layout.make()
        _write_private(layout.folder / "munge" / "key", secrets.token_bytes(128))
        _write_private(layout.jwt_key, secrets.token_bytes(32))
        layout.conf.write_text(configuration.slurm_conf(layout, self.ports, options))
        (layout.conf.parent / "gres.conf").write_text(configuration.gres_conf(layout, options))
        (layout.conf.parent / "accounts.cfg").write_text(configuration.accounts_file())
        _write_private(
            layout.conf.parent / "slurmdbd.conf", configuration.slurmdbd_conf(layout, self.ports).encode()
        )
        _make_devices(layout.folder / "devices", options.gpus)

    def _start_munged(self) -> None:
        folder = self.layout.folder / "munge"
        munged = self._begin(
            MUNGED,
            [
                program("munged"),
                "--foreground",
                f"--key-file={folder}/key",
                f"--socket={self.layout.munge_socket}",
                f"--pid-file={self.layout.folder}/run/munged.pid",
                f"--log-file={self.layout.logs}/munged-own.log",
                f"--seed-file={folder}/seed",
                "--num-threads=4",
            ],
        )
        until(self.layout.munge_socket.exists, READY_SECONDS, "munged listens", munged)

    def _start_database(self) -> None:
        layout = self.layout
        settings = layout.database / "my.cnf"
        settings.write_text(configuration.my_cnf(layout, self.ports))
        shutil.chown(layout.database, "mysql")
        self.run(
            "mariadb-install-db",
            f"--defaults-file={settings}",
            "--auth-root-authentication-method=socket",
            "--skip-test-db",
        )
        mariadb = self._begin(MARIADB, [program("mariadbd"), f"--defaults-file={settings}"])
        socket = f"--socket={layout.database}/socket"
        until(
            lambda: self._succeeds("mariadb-admin", socket, "ping"), READY_SECONDS, "MariaDB answers", mariadb
        )
        user = f"{configuration.DATABASE_USER}@'127.0.0.1'"
        self.run(
            "mariadb",
            socket,
            "-e",
            f"create database {configuration.DATABASE};"
            f" create user {user} identified by '{configuration.DATABASE_WORD}';"
            f" grant all on {configuration.DATABASE}.* to {user}",
        )
        slurmdbd = self._begin(SLURMDBD, [program("slurmdbd"), "-D"])
        until(
            lambda: self._succeeds("sacctmgr", "-n", "list", "cluster"), READY_SECONDS, "slurmdbd", slurmdbd
        )

    def _start_slurmctld(self) -> None:
        slurmctld = self._begin(SLURMCTLD, [program("slurmctld"), "-D"])
        until(self.answers, READY_SECONDS, "slurmctld answers", slurmctld)
        if self.options.backup:
            self._start_backup()

    def _start_backup(self) -> None:
        hosts = self.layout.conf.parent / "hosts"
        address, name = configuration.BACKUP_ADDRESS, configuration.BACKUP_HOST
        hosts.write_text(f"127.0.0.1 localhost\n{address} {name}\n")
        elsewhere = [program("unshare"), "--uts", "--mount", "sh", "-e", "-c", _ELSEWHERE, "sh", name]
        logged = ["-L", f"{self.layout.logs}/slurmctld-backup-own.log"]
        whole = [*elsewhere, str(hosts), f"{self.layout.folder}/run", program("slurmctld"), "-D", *logged]
        self._begin(BACKUP, whole).check_alive()

    def _load_accounts(self) -> None:
        self.run("sacctmgr", "-i", "add", "qos", URGENT)
        self.run("sacctmgr", "-i", "load", f"file={self.layout.conf.parent}/accounts.cfg")
        self.run("sacctmgr", "-i", "modify", "cluster", CLUSTER, "set", f"qos=normal,{URGENT}")

    def _start_nodes(self) -> None:
        for number in range(1, self.options.nodes + 1):
            name = f"n{number}"
            (self.layout.folder / "spool" / name).mkdir(exist_ok=True)
            self._begin(f"slurmd-{name}", [program("slurmd"), "-D", "-N", name])
        self._until_idle()

    def _start_rest(self) -> None:
        shutil.chown(self.layout.rest_socket.parent, OPERATOR)
        ways = {
            SLURMRESTD: ("rest_auth/jwt", f"127.0.0.1:{self.ports.slurmrestd}", "SLURM_JWT=daemon"),
            SLURMRESTD_SOCKET: ("rest_auth/local", f"unix:{self.layout.rest_socket}"),
        }
        for name, (auth, where, *environ) in ways.items():
            words = [*_OPERATING, program("slurmrestd"), "-a", auth, "-s", _REST_VERSIONS, where]
            self._begin(name, words, *environ).check_alive()
        until(
            self.layout.rest_socket.exists,
            READY_SECONDS,
            "slurmrestd listens",
            self.process(SLURMRESTD_SOCKET),
        )

    def _begin(self, name: str, command: Sequence[str], *environ: str) -> LabProcess:
        # slurmscriptd, which slurmctld starts, at times crashes as that is stopped: no core of it shall lie where a test began.
        whole = [
            program("prlimit"),
            "--core=0",
            program("env"),
            f"SLURM_CONF={self.conf}",
            *environ,
            *command,
        ]
        return self._launch(name, whole, self.layout.logs)

    def _until_idle(self) -> None:
        def idle() -> bool:
            states = self.run("sinfo", "-h", "-N", "-o", "%N %T").split("\n")
            return len({line for line in states if line.endswith(" idle")}) == self.options.nodes

        self.until(idle, "all nodes are idle")

    def _succeeds(self, *command: str) -> bool:
        try:
            self.run(*command)
        except SlurmCommandError:
            return False
        return True

    def _end_jobs(self) -> None:
        """End what Slurm started in sessions of its own: steps and their jobs, which carry this lab's SLURM_CONF."""
        daemons = set(self.pids().values())
        mark = f"SLURM_CONF={self.conf}".encode()
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) in {os.getpid(), *daemons}:
                continue
            with contextlib.suppress(OSError):
                environ, command = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()
                # A job's process, or the slurmstepd above it: not the shell of somebody who exported SLURM_CONF.
                is_step = b"\0SLURM_JOB_ID=" in environ or b"slurmstepd" in command
                if is_step and mark in environ.split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(content)


def _make_devices(folder: Path, count: int) -> None:
    """GPUs' device files: as root null devices; else links to terminals, of which each machine has many."""
    for number in range(count):
        path = folder / f"gpu{number}"
        if path.exists():
            continue
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            path.symlink_to(f"/dev/tty{number}")
