"""Faults of Fairlead's hooks that run Slurm's jobs as pods. Pure; says nothing where they are not set."""

import re
from collections.abc import Iterator

from fairlead_cli.findings import Finding, error, info, warning
from fairlead_cli.slurm.survey import SlurmSurvey, check
from fairlead_slurm.cluster import BACKUP_CONTROLLER, SlurmSettings
from fairlead_slurm.hooks.installing import (
    ALLOW_NONE,
    EPILOG,
    EPILOG_SLURMCTLD,
    NO_HOLD,
    PROLOG_SLURMCTLD,
    REQUEUE_EXIT,
)
from fairlead_slurm.hooks.slurm_conf import conf_dangers

_LONGEST_UNLIMITED = 65_534
"""Number that slurmctld prints for a time that is not set."""
_POD_STOP_SECONDS = 25
"""Seconds that a pod has to end, by default (`pods_stop_seconds`)."""


def has_hooks(settings: SlurmSettings) -> bool:
    """Whether Fairlead's prolog is set."""
    return settings.hooks.get("PrologSlurmctld", "").endswith(f"/{PROLOG_SLURMCTLD}")


@check("hooks", fine=lambda survey: "set" if has_hooks(survey.settings) else "no job runs as a pod")
def _pod_hooks(survey: SlurmSurvey) -> Iterator[Finding]:
    """The findings on the hooks."""
    if has_hooks(survey.settings):
        hooks = survey.settings.hooks
        yield from _missing(hooks)
        yield from _times(hooks)
        for one in conf_dangers({key.lower(): value for key, value in hooks.items()}):
            told = info if one.key == "Prolog" else warning  # a site may need one, and it may never fail
            yield told(f"slurm.conf/{one.key}", one.what, why=one.why, mend=one.mend)
        if NO_HOLD not in survey.settings.scheduler:
            yield warning(
                "slurm.conf/SchedulerParameters",
                f"SchedulerParameters does not say {NO_HOLD}.",
                why="After a kill of slurmctld Slurm may hold a job that it starts anew, until an administrator releases it.",
                mend=f"SchedulerParameters=...,{NO_HOLD}",
            )
        yield from _backup(survey)
        yield from _tokens(survey)


def _backup(survey: SlurmSurvey) -> Iterator[Finding]:
    host = survey.settings.hooks.get(BACKUP_CONTROLLER, "")
    if host and not survey.over_tls:
        yield warning(
            "slurm.conf/SlurmctldHost",
            f"slurmctld has a backup, {host}, and the hooks ask at their own host's socket.",
            why="Where the backup takes over and the bridge of the first host leads on, every job goes back into the queue.",
            mend="fairlead slurm install --endpoint HOST1:PORT --endpoint HOST2:PORT, on both hosts",
        )


def _tokens(survey: SlurmSurvey) -> Iterator[Finding]:
    if survey.tokens is None:
        return
    name, _, server = survey.tokens.partition("@")
    if not survey.tokens_known:
        yield error(
            f"licence/{survey.tokens}",
            f"slurmctld has no licence {survey.tokens}.",
            why="The hooks have each job with GPUs ask for it, and Slurm refuses such a job at its submission.",
            mend=f"sacctmgr add resource name={name} server={server} servertype=fairlead type=license"
            f" count=0 cluster={survey.settings.cluster} percentallowed=100",
            name="tokens",
        )
    if ALLOW_NONE not in survey.settings.scheduler:
        yield error(
            "slurm.conf/SchedulerParameters",
            f"SchedulerParameters does not say {ALLOW_NONE}.",
            why="Slurm refuses a job at its submission that asks for more tokens than there are just then.",
            mend=f"SchedulerParameters=...,{ALLOW_NONE}",
            name="tokens",
        )


def _missing(found: dict[str, str]) -> Iterator[Finding]:
    folder = found["PrologSlurmctld"].removesuffix(f"/{PROLOG_SLURMCTLD}")
    for key, name in (("EpilogSlurmctld", EPILOG_SLURMCTLD), ("Epilog", EPILOG)):
        if f"{folder}/{name}" not in found.get(key, ""):
            why = "Nobody takes the pod of a job away at its end, until the bridge's next look."
            yield _lacking(found, key, why=why, mend=f"{key}={folder}/{name}")
    lua = "lua   # and fairlead.lua called by job_submit.lua"
    in_the_node = (
        "The script of a job would run on the node instead of in its pod: the gate cancels such a job."
    )
    fails = "A job whose pod was taken away by somebody else would fail instead of being tried again."
    for key, value, why in (
        ("JobSubmitPlugins", lua, in_the_node),
        ("RequeueExit", str(REQUEUE_EXIT), fails),
    ):
        if value.split()[0] not in found.get(key, "").split(","):
            yield _lacking(found, key, why=why, mend=f"{key}={value}")


def _lacking(found: dict[str, str], key: str, *, why: str, mend: str) -> Finding:
    what = f"{key} is {found.get(key) or 'not set'}."
    return error(f"slurm.conf/{key}", what, why=why, mend=mend)


def _times(found: dict[str, str]) -> Iterator[Finding]:
    timeout, start = _seconds(found, "PrologEpilogTimeout"), _seconds(found, "BatchStartTimeout")
    if timeout is None:
        yield warning(
            "slurm.conf/PrologEpilogTimeout",
            "PrologEpilogTimeout is not set.",
            why="A hook that hangs holds its job, and its node, for ever.",
            mend="PrologEpilogTimeout=300",
            name="hook-times",
        )
    if start is not None and start <= (timeout or 0):
        yield warning(
            "slurm.conf/BatchStartTimeout",
            f"BatchStartTimeout is {start} s.",
            why="Where a node registers meanwhile, Slurm gives a job up as lost whose hooks take longer than that.",
            mend=f"BatchStartTimeout={2 * (timeout or 300)}",
            name="hook-times",
        )
    kill = _seconds(found, "KillWait")
    if kill is not None and kill <= _POD_STOP_SECONDS:
        yield warning(
            "slurm.conf/KillWait",
            f"KillWait is {kill} s.",
            why="Slurm kills the process that prints a pod's output before the pod has had its time to end.",
            mend="KillWait=60",
            name="hook-times",
        )


def _seconds(found: dict[str, str], key: str) -> int | None:
    number = re.match(r"\d+", found.get(key, ""))
    return None if number is None or int(number[0]) >= _LONGEST_UNLIMITED else int(number[0])
