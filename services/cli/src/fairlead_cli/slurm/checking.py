"""Whether a slurmctld can be steered: what is missing or dangerous. Pure; `fairlead up` and `fairlead slurm check` share it.

Defaults are those of slurm.conf(5), the same from 22.05 to 25.11.
"""

import re
from collections.abc import Iterator

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, error, info, warning
from fairlead_cli.slurm.survey import SlurmSurvey, check
from fairlead_contracts.base.instants import to_datetime
from fairlead_slurm.cluster import NodeReservation
from fairlead_slurm.ladder import FEWEST_LEVELS, Ladder

OLDEST_TRIED = (22, 5)
_MULTIFACTOR = "priority/multifactor"
_OPERATORS = ("operator", "administrator")
_BACKFILL_DEPTH, _SCHEDULING_DEPTH = 500, 100
_BACKFILL_SECONDS, _SCHEDULING_SECONDS = 30, 60
_POLL_SECONDS = 2.0
"""Seconds between two readings, by default (`poll_seconds`)."""


@check("priority-type", fine=lambda survey: survey.settings.priority_type)
def _priority_type(survey: SlurmSurvey) -> Iterator[Finding]:
    kind = survey.settings.priority_type
    if kind != _MULTIFACTOR:
        yield error(
            "slurm.conf/PriorityType",
            f"PriorityType is {kind or 'not set'}.",
            why=f"Levels are written as SiteFactor, which counts with {_MULTIFACTOR} alone.",
            mend=f"PriorityType={_MULTIFACTOR}   # then restart slurmctld",
        )


def _own_factors(survey: SlurmSurvey) -> str:
    settings = survey.settings
    step = Ladder.over(settings.own_priority)
    weights = ", ".join(f"{name} {weight}" for name, weight in settings.weights.items()) or "none"
    return (
        f"Slurm's own factors ({weights}) count within a level; a level is worth {step.step}, room for {step.highest},"
        f" and a nice of up to {step.room} leaves its account where it stands"
    )


@check("priority-weights", fine=_own_factors)
def _weights(survey: SlurmSurvey) -> Iterator[Finding]:
    settings = survey.settings
    levels = Ladder.over(settings.own_priority).highest
    if levels < FEWEST_LEVELS:
        weights = ", ".join(f"{name} {weight}" for name, weight in settings.weights.items())
        yield error(
            "slurm.conf/PriorityWeight*",
            f"The priority weights add up to {settings.own_priority} ({weights}).",
            why="A level has to be worth more than all of Slurm's own factors together, and a SiteFactor has 31 bits:"
            f" there is room for {counted(levels, 'level')}, and {FEWEST_LEVELS} are needed.",
            mend="Divide all PriorityWeight* by the same number, so that they add up to less than a million: their order stays.",
        )


@check("priority-flags", fine="each of Slurm's own factors comes to its weight at most")
def _flags(survey: SlurmSurvey) -> Iterator[Finding]:
    raw = survey.settings.unbounded_by
    if raw:
        yield error(
            "slurm.conf/PriorityFlags",
            f"PriorityFlags has {listed(raw)}.",
            why="So a factor may come to more than its weight, and Slurm's own factors to more than a level is worth: "
            "they lift jobs over others' levels.",
            mend="Take it out of PriorityFlags   # then restart slurmctld",
        )
    if "INCR_ONLY" in survey.settings.priority_flags:
        yield error(
            "slurm.conf/PriorityFlags",
            "PriorityFlags has INCR_ONLY.",
            why="Slurm lowers no priority then, so a job that others have come before keeps what it has.",
            mend="Take it out of PriorityFlags   # then restart slurmctld",
        )
    if "enable_user_top" in survey.settings.scheduler:
        yield warning(
            "slurm.conf/SchedulerParameters",
            "SchedulerParameters has enable_user_top.",
            why="`scontrol top` gives a job a nice below 0, which lifts it over others' levels until it is written again.",
            mend="Take enable_user_top out of SchedulerParameters   # then scontrol reconfigure",
            name="user-top",
        )


@check("rights", fine=lambda survey: f"{survey.user} may write levels")
def _rights(survey: SlurmSurvey) -> Iterator[Finding]:
    settings, user, level = survey.settings, survey.user, survey.administration
    if user in ("root", settings.slurm_user) or (level or "").lower() in _OPERATORS:
        return
    if level is None:
        yield warning(
            f"user/{user}",
            f"Whether {user} is an operator could not be looked up: sacctmgr does not answer.",
            why="Slurm refuses a SiteFactor from anybody but operators, and says so at the first level that is written.",
            mend=f"sacctmgr show user where name={user} format=User,AdminLevel",
        )
    elif not settings.has_accounting:
        yield error(
            f"user/{user}",
            f"{user} is neither root nor SlurmUser ({settings.slurm_user}), and there is no slurmdbd.",
            why="Slurm refuses a SiteFactor from anybody but operators, and only accounting can name some.",
            mend=f"Run Fairlead as {settings.slurm_user}, or set up slurmdbd. (--user NAME checks for another user.)",
        )
    else:
        known = f"has AdminLevel {level}" if level else "is not known to accounting"
        mend = f"modify user where name={user} set" if level else f"add user {user} account=fairlead"
        yield error(
            f"user/{user}",
            f"{user} {known}.",
            why="Slurm refuses a SiteFactor from anybody but operators. (--user NAME checks for another user.)",
            mend=("" if level else "sacctmgr add account fairlead\n")
            + f"sacctmgr {mend} adminlevel=operator",
        )


@check("version", fine=lambda survey: f"Slurm {survey.settings.version}")
def _version(survey: SlurmSurvey) -> Iterator[Finding]:
    version = survey.settings.version
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST_TRIED:
        yield warning(
            "slurmctld",
            f"slurmctld is Slurm {version or 'of an unknown version'}.",
            why="Fairlead was never tried on releases before 22.05: what their commands print may be read wrongly.",
            mend="Upgrade Slurm, or compare `fairlead queue` with `squeue --sort=-p` before you rely on it.",
        )


@check("preemption", fine="no job stops another")
def _preemption(survey: SlurmSurvey) -> Iterator[Finding]:
    kind = survey.settings.preempt_type
    if kind not in ("", "(null)", "preempt/none"):
        yield warning(
            "slurm.conf/PreemptType",
            f"PreemptType is {kind}: jobs that start may stop others that run.",
            why="A job whose tier or QOS may stop others starts by that, wherever it stands in the order and whatever class the"
            " policy grants it. Fairlead does not count that.",
            mend="PreemptType=preempt/none   # or keep it, and give that QOS to those alone whom the policy grants its class",
        )


@check("depth", fine=lambda survey: f"Slurm tries every job that waits ({survey.waiting} now)")
def _depth(survey: SlurmSurvey) -> Iterator[Finding]:
    settings, waiting = survey.settings, survey.waiting
    if settings.scheduler_type == "sched/backfill":
        most = _parameter(survey, "bf_max_job_test", _BACKFILL_DEPTH)
        if most < waiting:
            yield warning(
                "slurm.conf/SchedulerParameters",
                f"{counted(waiting, 'job waits', 'jobs wait')}, and backfill tries the first {most} (bf_max_job_test).",
                why="Jobs behind those fill no gap, however small they are.",
                mend=f"SchedulerParameters=...,bf_max_job_test={_roomy(waiting)},bf_continue",
                name="backfill-depth",
            )
    most = _parameter(survey, "default_queue_depth", _SCHEDULING_DEPTH)
    if most < waiting:
        yield info(
            "slurm.conf/SchedulerParameters",
            f"{counted(waiting, 'job waits', 'jobs wait')}, and the first {most} are tried when a job ends (default_queue_depth).",
            why="The others are tried every sched_interval only. That matters where the first are all of a partition that is full.",
            mend=f"SchedulerParameters=...,default_queue_depth={_roomy(waiting)}",
            name="queue-depth",
        )


@check("interval", fine="Slurm looks at the queue at least as often as by default")
def _interval(survey: SlurmSurvey) -> Iterator[Finding]:
    intervals = [("sched_interval", _SCHEDULING_SECONDS)]
    if survey.settings.scheduler_type == "sched/backfill":
        intervals.append(("bf_interval", _BACKFILL_SECONDS))
    for name, default in intervals:
        seconds = _parameter(survey, name, default)
        if 0 <= seconds <= default:
            continue
        often = f"every {seconds} s" if seconds > 0 else "never"
        yield warning(
            "slurm.conf/SchedulerParameters",
            f"{name} is {seconds} s: that scheduler goes over the queue {often} by itself.",
            why="A level that is written starts no scheduling: the order counts when Slurm looks the next time.",
            mend=f"SchedulerParameters=...,{name}={default}",
        )


@check("associations", fine=lambda survey: f"Slurm enforces {', '.join(survey.settings.enforced)}")
def _associations(survey: SlurmSurvey) -> Iterator[Finding]:
    settings = survey.settings
    if not settings.enforces_associations:
        enforced = ",".join(settings.enforced) or "none"
        yield warning(
            "slurm.conf/AccountingStorageEnforce",
            f"AccountingStorageEnforce is {enforced}: an account is whatever a job says.",
            why="Accounts are Fairlead's tenants: anybody may take another's part by naming its account.",
            mend="AccountingStorageEnforce=associations,limits,qos   # needs slurmdbd",
        )


@check("held", fine="no job is held by an administrator")
def _held(survey: SlurmSurvey) -> Iterator[Finding]:
    if survey.held_by_admin:
        yield info(
            "queue",
            f"{counted(survey.held_by_admin, 'job is', 'jobs are')} held by an administrator.",
            why="A held job has no position in the order until it is released.",
            mend='squeue --states=PENDING --format="%i %u %r" | grep JobHeldAdmin   # scontrol release JOB',
        )


@check("reservations", fine="no nodes are reserved")
def _reservations(survey: SlurmSurvey) -> Iterator[Finding]:
    if survey.reservations:
        told = [f"{one.name} ({one.nodes}{_when(one)})" for one in survey.reservations]
        yield info(
            "scontrol show reservation",
            f"{counted(len(told), 'reservation keeps', 'reservations keep')} nodes: {listed(told)}.",
            why="There Slurm starts nobody else's jobs, and none whose time limit reaches beyond the beginning. Fairlead counts"
            " these nodes for all, so a job may be first, fit into what is free, and wait.",
            mend="scontrol update jobid=JOB timelimit=MINUTES   # one that ends before the reservation begins may start",
        )


@check("tiers", fine="no nodes are in partitions of several tiers")
def _tiers(survey: SlurmSurvey) -> Iterator[Finding]:
    if survey.tiers:
        yield info(
            "slurm.conf/PriorityTier",
            f"Nodes are in partitions of several tiers: {listed(list(survey.tiers))}.",
            why="Each tier is a pool of its own, and counts these nodes whole. What runs in one pool does not count in the other:"
            " a job may be first, fit into what its pool has free, and wait.",
            mend="Give these partitions one PriorityTier, or nodes of their own.",
        )


def _when(one: NodeReservation) -> str:
    if one.begins is None or one.ends is None:
        return ""
    begins, ends = (f"{to_datetime(at):%Y-%m-%d %H:%M}" for at in (one.begins, one.ends))
    return f", {begins} to {ends} UTC"


def _parameter(survey: SlurmSurvey, name: str, default: int) -> int:
    try:
        return int(survey.settings.scheduler.get(name, default))
    except ValueError:
        return default


def _roomy(waiting: int) -> int:
    """A round number that also holds a longer queue."""
    return -(-2 * waiting // 1000) * 1000


def _how_asked(survey: SlurmSurvey) -> str:
    """The sentence on how Slurm is asked, where nothing is found."""
    found = survey.rest
    if found is None:
        return "Slurm is asked by its commands"
    by = (
        f"by {found.levels}"
        if found.levels
        else "by scontrol: slurmrestd offers no version that is known to do it"
    )
    return f"read by {found.reads}; SiteFactor is set {by}"


@check("slurmrestd", fine=_how_asked)
def _slurmrestd(survey: SlurmSurvey) -> Iterator[Finding]:
    """Findings against asking a slurmrestd; none where none is to be asked."""
    found = survey.rest
    if found is None:
        return
    if found.trouble:
        yield error(
            found.address,
            f"slurmrestd cannot be asked: {found.trouble}",
            why="The bridge would know of no job.",
            mend="Leave FAIRLEAD_SLURMRESTD out, and the bridge asks by Slurm's commands; or see docs/slurm.md, slurmrestd.",
        )
        return
    if found.seconds > _POLL_SECONDS / 2:
        yield warning(
            found.address,
            f"One reading of the queue by slurmrestd takes {found.seconds:.1f} s.",
            why="It is read every two seconds, and slurmrestd is busy as long each time.",
            mend="Leave FAIRLEAD_SLURMRESTD out: squeue takes some 5 % of that.",
        )
    if found.tasks_cut:
        yield info(
            found.address,
            "slurmrestd does not name all tasks of a long array.",
            why="Where that is so, the bridge reads the queue by squeue.",
            mend="SLURM_BITSTR_LEN=0   # in slurmrestd's environment",
        )
