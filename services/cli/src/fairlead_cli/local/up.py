"""`fairlead up`: a whole instance until Ctrl-C."""

import asyncio
import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairlead_bus import Bus
from fairlead_cli.client.connection import connection_settings
from fairlead_cli.client.controls import control_words
from fairlead_cli.client.instance import RunningInstance, forget, remember, state_directory, without_password
from fairlead_cli.client.readiness import READY_WITHIN_SECONDS, wait_answering
from fairlead_cli.console import say, warn
from fairlead_cli.errors import InputError
from fairlead_cli.kueue.clusters import KubeTarget, targets
from fairlead_cli.kueue.flags import DoctorFlags
from fairlead_cli.local.dry_run import dry_run_of
from fairlead_cli.local.examining import examined, examined_slurm
from fairlead_cli.local.flags import UpFlags
from fairlead_cli.local.stack import Stack, StackPlan, child_environment, running
from fairlead_cli.policy.applying import remark_on
from fairlead_cli.policy.files import PolicyFile, read_file, shipped_policy
from fairlead_cli.policy.members import ended_members, running_clusters, stated_members, unknown_members
from fairlead_cli.policy.store import in_force
from fairlead_cli.signals import ending_on_signals
from fairlead_cli.slurm.clusters import SlurmTarget
from fairlead_cli.slurm.clusters import target as slurm_target
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_sim.config import load_cluster
from fairlead_sim.errors import ConfigError

LAPTOP, KUBERNETES, SLURM = "laptop", "kubernetes", "slurm"
"""Policies that ship with the command, for a first start."""
ADDRESS = "FAIRLEAD_NATS_URL"
_MOST_NAMED = 5
_REAL_WITHIN_SECONDS = 30.0
"""Seconds that a real cluster has to be told of, before `up` goes on without it."""
_LATE_SECONDS = 900.0
"""Seconds for which a start that was slow is watched."""
_LONGEST_NAME = 200
"""Characters of a store's name at most, whatever clusters are called."""


async def stay_up(flags: UpFlags) -> int:
    """Run until a signal asks for the end; returns the exit code."""
    state = state_directory(os.environ)
    plan, accounts = _plan(flags, state), _simulated_accounts(flags.cluster_file)
    if flags.policy is not None:
        remark_on(plan.policy.policy)
    say("starting … (half a minute at most on most machines; a line then says what runs)")
    with ending_on_signals() as end:
        dry_run = dry_run_of(plan) if plan.dry_run else contextlib.nullcontext()
        async with dry_run, running(plan, say=say) as stack:
            with _remembered(state, RunningInstance(url=stack.url, pid=os.getpid(), store=str(plan.store))):
                for note in stack.notes:
                    say(note)
                await examined(plan, stack.bus, DoctorFlags(lever=flags.lever), end)
                async with examined_slurm(plan.slurm, stack.bus, dry_run=plan.dry_run, end=end):
                    await _introduce(stack, plan, accounts, end)
                    await end.wait()
            say("ending …")
    say("ended; jobs, queue and policy are kept for the next `fairlead up`")
    return 0


def _plan(flags: UpFlags, state: Path) -> StackPlan:
    kubernetes, slurm = _targets(flags)
    # Each set of clusters has a store of its own: a policy made for one would be odd on another.
    clusters = [*(one.cluster for one in kubernetes), *(one.cluster for one in slurm)]
    names = "+".join(clusters)[:_LONGEST_NAME]
    store = state / (f"store-{names}" if names else "store")
    default = KUBERNETES if kubernetes else SLURM if slurm else LAPTOP
    return StackPlan(
        store=(flags.store or store).absolute(),
        policy=PolicyFile(name=default, policy=shipped_policy(default))
        if flags.policy is None
        else read_file(flags.policy),
        keep_policy=flags.policy is None,
        scorers=flags.scorers,
        cluster=None if kubernetes or slurm else flags.cluster or "sim",
        cluster_file=flags.cluster_file,
        kubernetes=kubernetes,
        slurm=slurm,
        gang_fit=flags.gang_fit,
        dry_run=flags.dry_run,
        nats=flags.nats,
        port=flags.port,
        environ=child_environment(os.environ),
    )


def _targets(flags: UpFlags) -> tuple[list[KubeTarget], list[SlurmTarget]]:
    """The clusters to steer.

    Raises:
        InputError: one cannot be found, or a flag is for others.
    """
    kubernetes = (
        targets(kubeconfig=flags.kubeconfig, contexts=flags.context, cluster=flags.cluster)
        if flags.kubeconfig is not None or flags.context
        else []
    )
    if flags.gang_fit and not kubernetes:
        raise InputError("--gang-fit is for Kubernetes clusters: name one with --kubeconfig or --context")
    slurm = [] if flags.slurm_conf is None else [slurm_target(flags.slurm_conf, flags.slurm_users)]
    if {one.cluster for one in slurm} & {one.cluster for one in kubernetes}:
        raise InputError(
            f"two clusters would both be called {slurm[0].cluster}", hint="Name the other: --cluster NAME."
        )
    return kubernetes, slurm


def _offer(accounts: Sequence[str], policy: PolicyDocument) -> None:
    """Say how to submit as one of the accounts, if the policy lets one in."""
    account = an_account(accounts, policy)
    if account is not None:
        say(f"  fairlead submit --tenant {account} --gpus 8 --cpu 32 --memory 128Gi --run-seconds 60")
    elif accounts:
        named = ", ".join(accounts[:_MOST_NAMED])
        warn(
            f"the policy in force may let in none of the cluster's accounts ({named}): `fairlead policy show` says whom it lets in"
        )


def an_account(accounts: Sequence[str], policy: PolicyDocument) -> str | None:
    """An account that the policy takes jobs of: one that is a tenant, else one of a `match`, else any if others are let in."""
    parents = {tenant.parent for tenant in policy.tenants}
    leaves = [tenant for tenant in policy.tenants if tenant.name not in parents]
    named = {tenant.name for tenant in leaves if tenant.match is None}
    matched = {scope for tenant in leaves if tenant.match is not None for scope in tenant.match.scopes or ()}
    let_in = (*(one for one in accounts if one in named), *(one for one in accounts if one in matched))
    others = accounts if policy.unlisted_weight is not None else ()
    return next(iter((*let_in, *others)), None)


def _simulated_accounts(cluster_file: Path | None) -> list[str]:
    """The accounts of the simulated cluster. Refuses a file that it would refuse: it would only say so in its log."""
    try:
        return list(load_cluster(None if cluster_file is None else str(cluster_file)).accounts)
    except ConfigError as error:
        what = f"{error.what}:" if error.problems else error.what
        raise InputError(what, problems=error.problems) from error


async def _introduce(stack: Stack, plan: StackPlan, accounts: Sequence[str], end: asyncio.Event) -> None:
    """Say what runs once it answers, and what to type next."""
    # A simulated cluster is always there in the end; a real one may be out of reach for long.
    within = _REAL_WITHIN_SECONDS if plan.real else READY_WITHIN_SECONDS
    lacking = await wait_answering(stack.bus, end, within=within, told=say)
    if end.is_set():
        return
    if lacking:
        warn(f"not ready yet: {lacking}; if it stays so, the logs say why: {plan.store / 'logs'}")
    say(f"running: {plan.scorers} scorers, {_steering(plan)}; logs in {plan.store / 'logs'}")
    say(f"NATS: {connection_settings(stack.url, {}).redacted()['url']}")
    if plan.nats is None:
        say(
            "NATS has one user here, whose password your own commands find: share it with nobody."
            if plan.real
            else "NATS has no users here: everybody on this machine may submit as any tenant."
        )
    if os.environ.get(ADDRESS, stack.url) not in {stack.url, without_password(stack.url)}:
        warn(f"{ADDRESS} is set to another address, and other commands go there: unset it to reach this one")
    if not plan.keep_policy:
        policy, stated = plan.policy.policy, await stated_members(stack.bus)
        for sentence in (
            *unknown_members(policy, stated),
            *ended_members(policy, stated, await running_clusters(stack.bus)),
        ):
            warn(sentence)
    # What operators said of writing levels before this start outlasts it.
    for told in (await control_words(stack.bus)).held_back():
        say(f"note: {told}")
    say("")
    say("In another terminal:")
    if plan.cluster:
        _offer(accounts, (await in_force(stack.bus)).policy or plan.policy.policy)
    say("  fairlead queue | tenants | top | explain JOB")
    say("Ctrl-C ends it.")
    if lacking:
        await tell_ready(stack.bus, end)


async def tell_ready(bus: Bus, end: asyncio.Event) -> None:
    """Wait until the services answer, and say so: `up` has said that they do not yet."""
    if not await wait_answering(bus, end, within=_LATE_SECONDS, pause=1.0) and not end.is_set():
        say("ready now: the scorers answer")


def _steering(plan: StackPlan) -> str:
    if not plan.kubernetes and not plan.slurm:
        cluster = f", cluster {plan.cluster}" if plan.cluster else ""
        return f"an admitter{' (dry run: nothing is written)' if plan.dry_run else ''}{cluster}"
    each = []
    if plan.kubernetes:
        services = (
            "a watcher, an admitter and a checker of gangs" if plan.gang_fit else "a watcher and an admitter"
        )
        each.append(f"{services} for {', '.join(target.cluster for target in plan.kubernetes)}")
    if plan.slurm:
        named = ", ".join(target.cluster for target in plan.slurm)
        each.append(f"a slurm-bridge and an admitter for {named}")
    return ", ".join(each) + (" (dry run)" if plan.dry_run else "")


@contextlib.contextmanager
def _remembered(directory: Path, instance: RunningInstance) -> Iterator[None]:
    """Leave word of the instance for other terminals, and take it away again."""
    try:
        remember(directory, instance)
    except OSError as error:
        warn(f"other terminals must be told the address with --nats: {directory} cannot be written: {error}")
    try:
        yield
    finally:
        forget(directory, instance.pid)
