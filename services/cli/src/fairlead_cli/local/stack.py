"""A whole Fairlead on this machine, as child processes: nats-server, scorers, and for each cluster its admitter.

A cluster is a simulated one, which runs here, too, or one of Kubernetes, which gets a watcher, or of Slurm, which gets a
bridge.
"""

import asyncio
import fcntl
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import msgspec

from fairlead_bus import Bus, connect
from fairlead_bus.server.provision import provision
from fairlead_cli.client.connection import connection_settings
from fairlead_cli.client.steering_mode import this_user
from fairlead_cli.errors import CommandError, InputError, OvertakenError, ProcessFailedError
from fairlead_cli.kueue.clusters import KubeTarget
from fairlead_cli.local.server import ServerPlan, plan_server, wait_ready
from fairlead_cli.local.supervision import Program, Supervisor, reaper
from fairlead_cli.outcomes import PolicyPut
from fairlead_cli.policy.applying import ApplyTerms, apply_file
from fairlead_cli.policy.files import PolicyFile
from fairlead_cli.policy.store import in_force
from fairlead_cli.slurm.clusters import SlurmTarget
from fairlead_contracts.topology import topology

FREE_PORT = "0"
_OURS_ALONE = ("FAIRLEAD_NATS_URL", "FAIRLEAD_HEALTH_PORT", "FAIRLEAD_REPLICA", "FAIRLEAD_CONFIG")


class StackPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of what to run on this machine."""

    store: Path
    """Directory of everything that outlives a run: JetStream's data, the cluster's own truth, logs."""
    policy: PolicyFile
    keep_policy: bool = False
    """Whether a policy that is stored already is left as it is."""
    scorers: int = 2
    cluster: str | None = "sim"
    """Name of the simulated cluster; None runs none."""
    cluster_file: Path | None = None
    kubernetes: Sequence[KubeTarget] = ()
    slurm: Sequence[SlurmTarget] = ()
    gang_fit: bool = False
    """Whether the check for gang fit is answered on each cluster of Kubernetes."""
    dry_run: bool = False
    """Whether admitters and checkers say what they would write, and write nothing."""
    nats: str | None = None
    """Address of a NATS to use; None runs an embedded server."""
    port: int | None = None
    """Port of the embedded server; None takes a free one."""
    alone: bool = False
    """Whether nobody but this command connects to the embedded server."""
    environ: Mapping[str, str]

    @property
    def real(self) -> bool:
        """Whether jobs run anywhere but in a simulation."""
        return bool(self.kubernetes or self.slurm)

    @property
    def clusters(self) -> list[str]:
        """The names of all its clusters."""
        simulated = [self.cluster] if self.cluster else []
        kubernetes = [target.cluster for target in self.kubernetes]
        return [*simulated, *kubernetes, *(target.cluster for target in self.slurm)]


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """A whole Fairlead that runs: its address, its connection, its processes."""

    url: str
    bus: Bus
    supervisor: Supervisor
    notes: Sequence[str]
    """Lines on what was created or changed on the way up."""


@asynccontextmanager
async def running(plan: StackPlan, *, say: Callable[[str], None]) -> AsyncIterator[Stack]:
    """Everything that the plan names, for the time of the block; services end before their NATS server does.

    Raises:
        CommandError: the store is in use, a process cannot be run, NATS cannot be reached.
    """
    logs = _make_directories(plan.store)
    with _locked(plan.store):
        async with reaper() as held, asyncio.TaskGroup() as outer:
            supervisor = Supervisor(group=held.pid, logs=logs, say=say)
            server, url = await _serve(plan, supervisor, outer)
            watching = outer.create_task(_fail_with(held), name="reaper")
            async with connect(connection_settings(url, plan.environ), name="up") as bus:
                notes = await _prepare(bus, plan)
                async with asyncio.TaskGroup() as inner:
                    services = [
                        inner.create_task(supervisor.keep(program), name=program.name)
                        for program in _services(plan, url)
                    ]
                    yield Stack(url=url, bus=bus, supervisor=supervisor, notes=notes)
                    for service in services:
                        service.cancel()
            watching.cancel()
            if server is not None:
                server.cancel()


async def _serve(
    plan: StackPlan, supervisor: Supervisor, group: asyncio.TaskGroup
) -> tuple[asyncio.Task[None] | None, str]:
    if plan.nats is not None:
        return None, plan.nats
    guarded = plan.real or plan.alone
    server: ServerPlan = plan_server(plan.store, port=plan.port, environ=plan.environ, guarded=guarded)
    task = group.create_task(supervisor.keep(server.program), name="nats-server")
    await wait_ready(server)
    return task, server.url


async def _fail_with(held: asyncio.subprocess.Process) -> None:
    await held.wait()
    raise ProcessFailedError(
        "the process that looks after the services was ended from outside; everything is stopped"
    )


async def _prepare(bus: Bus, plan: StackPlan) -> list[str]:
    """Streams, buckets, durables and the policy, before the first service looks for them."""
    created = await provision(bus, topology(plan.clusters))
    applied = await _policy(bus, plan)
    return [
        *([f"{len(created)} streams, buckets and durables created or changed on NATS"] if created else []),
        *applied.notes,
        f"policy revision {applied.revision}" + (" (written)" if applied.written else " (unchanged)"),
    ]


async def _policy(bus: Bus, plan: StackPlan) -> PolicyPut:
    if plan.keep_policy and (revision := (await in_force(bus)).revision):
        return PolicyPut(revision=revision, written=False, notes=[])
    try:
        return await apply_file(bus, plan.policy, ApplyTerms(by=this_user()))
    except OvertakenError:
        if not plan.keep_policy:
            raise
        # Somebody put the first one in force in this very moment: it is the one to keep.
        return PolicyPut(revision=(await in_force(bus)).revision, written=False, notes=[])


def _services(plan: StackPlan, url: str) -> list[Program]:
    dry_run = ["--dry-run"] if plan.dry_run else []
    programs = [_service(plan, url, "scorer", f"scorer-{number}") for number in range(1, plan.scorers + 1)]
    if plan.cluster:
        cluster = ["--cluster", plan.cluster]
        store = ["--store", str(plan.store / f"cluster-{plan.cluster}.db")]
        config = ["--cluster-file", str(plan.cluster_file)] if plan.cluster_file else []
        programs.insert(0, _service(plan, url, "sim", f"sim-{plan.cluster}", [*cluster, *store, *config]))
        programs.append(_service(plan, url, "admitter", admitter_of(plan.cluster), [*cluster, *dry_run]))
    for target in plan.kubernetes:
        told = {"--cluster": target.cluster, "--kubeconfig": target.kubeconfig, "--context": target.context}
        flags = [word for flag, value in told.items() if value for word in (flag, value)]
        programs.insert(0, _service(plan, url, "watcher", f"watcher-{target.cluster}", flags))
        steering = ["--frontend", "kueue", *flags, *dry_run]
        programs.append(_service(plan, url, "admitter", admitter_of(target.cluster), steering))
        if plan.gang_fit:
            programs.append(_service(plan, url, "checker", f"checker-{target.cluster}", [*flags, *dry_run]))
    for found in plan.slurm:
        socket = str(plan.store / f"submitting-{found.cluster}.sock")
        remembered = str(plan.store / f"slurm-bridge-{found.cluster}.db")
        flags = ["--cluster", found.cluster, "--slurm-conf", str(found.conf), "--store", remembered]
        flags += ["--submit-socket", socket]
        programs[:0] = [
            _submitting(plan, found, socket),
            _service(plan, url, "slurm_bridge", f"slurm-bridge-{found.cluster}", flags),
        ]
        cluster = ["--cluster", found.cluster]
        programs.append(_service(plan, url, "admitter", admitter_of(found.cluster), [*cluster, *dry_run]))
    return programs


def _submitting(plan: StackPlan, target: SlurmTarget, socket: str) -> Program:
    """The program that submits: as root as the users of all accounts, else as whoever runs this alone."""
    command = [sys.executable, "-P", "-m", "fairlead_slurm.submitting", "--socket", socket]
    flags = ["--slurm-conf", str(target.conf), *(["--users", str(target.users)] if target.users else [])]
    return Program(name=f"submitting-{target.cluster}", command=[*command, *flags], environ=plan.environ)


def admitter_of(cluster: str) -> str:
    """The name of a cluster's admitter and of its log file."""
    return f"admitter-{cluster}"


def _service(plan: StackPlan, url: str, service: str, name: str, flags: Sequence[str] = ()) -> Program:
    # -P keeps a file in the person's directory from being imported in a library's place.
    command = [sys.executable, "-P", "-m", f"fairlead_{service}", "--health-port", FREE_PORT, *flags]
    # The address goes by the environment: it may carry a password, and command lines are there for all to read.
    return Program(name=name, command=command, environ={**plan.environ, "FAIRLEAD_NATS_URL": url})


def _make_directories(store: Path) -> Path:
    """The store, and in it the directory for logs."""
    logs = store / "logs"
    try:
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the store {store} cannot be made: {error}", hint="Choose one with --store."
        ) from error
    return logs


def _locked(store: Path) -> IO[bytes]:
    """Locks the store: two instances on it would corrupt it. The lock ends with the process."""
    file = (store / "lock").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise CommandError(
            f"another Fairlead runs on {store}", hint="Use that one, end it first, or choose another --store."
        ) from error
    return file


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: ours, without what must differ between children and is told by flags."""
    kept = {name: value for name, value in environ.items() if name not in _OURS_ALONE}
    kept.setdefault("PATH", os.defpath)
    return kept
