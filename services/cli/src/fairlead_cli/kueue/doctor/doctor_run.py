"""`fairlead doctor`: look at a cluster, say what is found, and give or take back the leave to steer it."""

import contextlib
import shlex
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

import msgspec

from fairlead_bus import Bucket, Bus, DeniedError, JetStreamNotFoundError, NoStreamError, RetryableBusError
from fairlead_cli.client import leave
from fairlead_cli.client.connection import connected, server_of
from fairlead_cli.client.controls import control_words
from fairlead_cli.client.phrases import listed
from fairlead_cli.client.steering_mode import this_user
from fairlead_cli.console import say, warn
from fairlead_cli.errors import InputError, NotRunningError
from fairlead_cli.findings import exit_code, open_names
from fairlead_cli.kueue.clusters import KubeTarget, opened
from fairlead_cli.kueue.doctor.checks import examine, known_names
from fairlead_cli.kueue.doctor.checks.queues import named_pools, preempting_pools
from fairlead_cli.kueue.doctor.reading import take
from fairlead_cli.kueue.doctor.survey import Survey
from fairlead_cli.kueue.doctor.verdict import DoctorReport, DoctorVerdict, acceptance, closing, judge, view
from fairlead_cli.kueue.flags import DoctorFlags
from fairlead_cli.options import Format
from fairlead_cli.policy.files import read_file, shipped_policy
from fairlead_cli.policy.members import other_clusters
from fairlead_cli.policy.store import stored_policy
from fairlead_cli.printing import is_for_people, print_answer
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.instants import from_datetime
from fairlead_contracts.messages.leave import Leave
from fairlead_contracts.messages.state import STATE, PoolState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_kube.lever import Lever

DEFAULT_POLICY = "kubernetes"


class OwnStart(msgspec.Struct, frozen=True, kw_only=True):
    """A start of the cluster's services by whoever looks: they have told of nothing yet, not even of its name."""

    dry_run: bool
    """Whether to look alone and give no leave."""
    checks_gangs: bool
    """Whether a checker of gangs was started with them: it may not lead yet."""


async def run_doctor(target: KubeTarget, flags: DoctorFlags, nats: str | None, *, form: Format) -> int:
    """Do as the flags say; returns the exit code.

    Raises:
        CommandError: the cluster cannot be reached, a name is unknown, or `--revoke` finds no NATS.
    """
    if flags.revoke:
        async with connected(nats) as reached:
            say(f"speaking to NATS at {server_of(nats)}")
            say(await leave.take_back(reached, target.cluster, by=flags.by or this_user()))
        return 0
    async with _bus(nats) as bus:
        found = await look(target, flags, bus)
    print_answer(found, form, view=lambda _screen: view(found), names=open_names(found.findings))
    if is_for_people(form):
        for line in found.said:
            say(line)
    return found.exit_code


async def look(
    target: KubeTarget, flags: DoctorFlags, bus: Bus | None, start: OwnStart | None = None
) -> DoctorReport:
    """Examine the cluster, and give leave where it passes and NATS is there.

    Args:
        flags: what the operator says of it.
        bus: a connection to Fairlead's NATS; None where it is not there.
        start: the start of its services that this look belongs to, if it does to one.

    Raises:
        InputError: a name to accept is no finding's name.
        ClusterError: the cluster cannot be reached.
    """
    _refuse_unknown(flags.accept)
    document, source = await _policy(flags.policy, bus)
    survey = Survey(
        cluster=target.cluster,
        at=from_datetime(datetime.now(UTC)),
        policy=document,
        leave=await leave.standing(bus, target.cluster) if bus is not None else None,
        stated_lever=Lever(flags.lever) if flags.lever else None,
    )
    async with opened(target) as client:
        survey = await take(client, survey, accounts=flags.service_accounts)
    if bus is not None:
        survey = msgspec.structs.replace(
            survey,
            elsewhere=await _stated_elsewhere(bus, survey),
            checker_leads=(start is not None and start.checks_gangs)
            or await checker_leads(bus, target.cluster),
            told_of=[] if start is not None else await other_clusters(bus, target.cluster),
        )
    verdict = judge(survey, examine(survey), flags.accept)
    cleared, said = await settle(survey, verdict, bus, flags, dry_run=start is not None and start.dry_run)
    release = survey.kueue.release
    return DoctorReport(
        cluster=survey.cluster,
        server=survey.server,
        kubernetes=survey.kubernetes,
        kueue=None if release is None else str(release),
        user=survey.user,
        policy=source,
        lever=verdict.lever,
        passed=verdict.passed,
        exit_code=exit_code(verdict.findings, passed=verdict.passed),
        findings=verdict.findings,
        cleared=cleared,
        said=said,
    )


def _refuse_unknown(accepted: Sequence[str]) -> None:
    """Refuses a name that no finding has."""
    known = sorted(known_names())
    unknown = sorted(set(accepted).difference(known))
    if unknown:
        near = get_close_matches(unknown[0], known, 1)
        raise InputError(
            f"--accept {unknown[0]}: no finding has this name",
            hint=f"Did you mean {near[0]}?" if near else f"Names are {', '.join(known)}.",
        )


async def settle(
    survey: Survey, verdict: DoctorVerdict, bus: Bus | None, flags: DoctorFlags, *, dry_run: bool = False
) -> tuple[Leave | None, list[str]]:
    """Give leave where it follows; what stands afterwards, and what to say."""
    said = [closing(survey, verdict)]
    said += [f"--accept {name}: there is no such finding here" for name in verdict.needless]
    before = survey.leave
    if bus is None:
        return None, [
            *said,
            "no leave was given: it is kept on Fairlead's NATS, which was not reached (--nats says where it is)",
        ]
    if dry_run:
        return before, [*said, "a dry run: nothing is written, and no leave was given"]
    given = verdict.leave(survey, by=flags.by or this_user(), at=datetime.now(UTC))
    if given is None:
        return before, [*said, *_refusal(survey, verdict)]
    if before is not None and (before.lever, before.accepted) == (given.lever, given.accepted):
        told = f"levels may be written already, by {before.lever}: {_given(before)}"
        return before, [*said, told, *await _not_written(bus, survey)]
    # A look alone does not go over the word of whoever took leave back.
    if not flags.give_leave and (reasons := await _held_back(bus, survey)):
        return before, [*said, *reasons]
    await leave.give(bus, given)
    return given, [
        *said,
        f"levels may be written from now on, by {given.lever} (fairlead doctor --revoke takes it back)",
        *await _not_written(bus, survey),
    ]


async def checker_leads(bus: Bus, cluster: str) -> bool | None:
    """Whether a checker of gangs leads; None where we may not know."""
    try:
        return await Bucket(bus, topology.MEMBERS).get(subjects.leader_key("checker", cluster)) is not None
    except (DeniedError, JetStreamNotFoundError, RetryableBusError):
        return None


async def _not_written(bus: Bus, survey: Survey) -> list[str]:
    """The places where nothing is written in spite of leave, and what changes that."""
    pools = {pool for pool, _ in named_pools(survey)}
    said = [f"but {told}" for told in (await control_words(bus)).held_back(pools)]
    if preempting := preempting_pools(survey):
        said.append(
            f"but nothing is written in pool {listed(preempting)}, where queues preempt: leave alone does not open it. "
            "It also takes `preemption: protect` or `accept` in the policy, or the patch above"
        )
    return said


async def _held_back(bus: Bus, survey: Survey) -> list[str]:
    """Lines on why a look alone gives no leave, and what does; empty where it gives it."""
    cluster = survey.cluster
    command = f"  fairlead doctor --cluster {shlex.quote(cluster)} --give-leave"
    if taken := await leave.revoked(bus, cluster):
        return [f"{taken}, and a look alone does not give it again. To give it:", command]
    # By a name that no service has it would do nothing, and whoever gave it would wait for levels.
    if survey.told_of:
        said = f"no leave was given: no service of Fairlead has told of a cluster {cluster}"
        known = f"Known are {', '.join(survey.told_of)}: --cluster NAME names one"
        return [f"{said}. {known}. If its services are yet to start, give leave all the same:", command]
    return []


def _refusal(survey: Survey, verdict: DoctorVerdict) -> list[str]:
    command = acceptance(survey, verdict)
    if survey.leave is None:
        return [
            "read-only: nothing is written to it. Mend what is said above, or accept it by name:",
            f"  {command}",
        ]
    return [
        f"it may be written to all the same: {_given(survey.leave)}. Mend what is said above, or:",
        f"  fairlead doctor --cluster {survey.cluster} --revoke",
    ]


def _given(leave: Leave) -> str:
    who = f" by {leave.by}" if leave.by else ""
    return f"leave was given{who} at {leave.at:%Y-%m-%d %H:%M} UTC"


async def _policy(path: Path | None, bus: Bus | None) -> tuple[PolicyDocument, str]:
    """The policy to measure by: a file's, the one in force, or the one that `up` would start with."""
    if path is not None:
        return read_file(path).policy, f"the policy in {path}"
    found = await stored_policy(bus) if bus is not None else None
    if found is not None:
        return found[0], f"policy revision {found[1]}"
    return shipped_policy(DEFAULT_POLICY), "the policy that `fairlead up --kubeconfig` starts with"


async def _stated_elsewhere(bus: Bus, survey: Survey) -> list[PoolState]:
    """The pools that share hardware with this cluster's, as other clusters last stated them."""
    found = []
    for pool in survey.policy.pools:
        if pool.hardware != "shared":
            continue
        for cluster, _, name in (member.partition("/") for member in pool.members):
            stored = None
            if cluster != survey.cluster:
                stored = await bus.last(topology.STATE, subjects.state(cluster, "pool", name))
            state = None if stored is None or not stored.payload else STATE.decode(stored.payload)
            if isinstance(state, PoolState):
                found.append(state)
    return found


@contextlib.asynccontextmanager
async def _bus(nats: str | None) -> AsyncIterator[Bus | None]:
    """A connection to Fairlead's NATS; None where it is not there, which is no failure: a look needs none."""
    async with contextlib.AsyncExitStack() as stack:
        bus: Bus | None = None
        try:
            bus = await stack.enter_async_context(connected(nats))
            await stored_policy(bus)
        except NotRunningError as error:
            if nats is not None:
                warn(str(error))
        except (NoStreamError, JetStreamNotFoundError):
            warn("NATS is there, but Fairlead's streams are not: `fairlead nats provision` makes them")
            bus = None
        yield bus
