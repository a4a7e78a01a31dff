"""A slurm.conf beside the hooks: which lines it lacks for them, and what in it does harm to jobs that run as pods. Pure."""

from collections.abc import Iterator, Mapping

import msgspec

from fairlead_slurm.hooks.installing import (
    CONF_LISTS,
    HOOK_KEYS,
    JOB_SUBMIT,
    LUA,
    HookSettings,
    conf_lines,
    merged,
)

_NOTHING = ("", "(null)")


class Danger(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a slurm.conf, or its absence, that harms jobs which run as pods."""

    key: str
    """Key of the line."""
    what: str
    why: str
    mend: str


def missing_lines(settings: HookSettings, conf: Mapping[str, str]) -> dict[str, str]:
    """The lines that `conf`, by key in small letters, lacks or has wrong; lists keep the site's own words."""
    return {
        key: merged(conf.get(key.lower(), ""), value) if key in CONF_LISTS else value
        for key, value in conf_lines(settings).items()
        if not _says(conf.get(key.lower(), ""), key, value)
    }


def _says(found: str, key: str, wanted: str) -> bool:
    """Whether a value does for a key: lists may hold the site's own words, some times may be longer."""
    if key in CONF_LISTS:
        return set(wanted.split(",")) <= set(found.split(","))
    if key in ("BatchStartTimeout", "KillWait"):
        return found.isdecimal() and int(found) >= int(wanted)
    return found == wanted


def replaced_hooks(settings: HookSettings, conf: Mapping[str, str]) -> Iterator[Danger]:
    """Hooks of the site's own that would run no more with Fairlead's lines: Slurm runs one of each."""
    for key, name in HOOK_KEYS.items():
        found, ours = conf.get(key.lower(), ""), f"{settings.folder}/{name}"
        if found not in (*_NOTHING, ours):
            yield Danger(
                key=key,
                what=f"{key} is {found}.",
                why=f"Slurm runs one {key}, so yours would run no more.",
                mend=f"ln -s {found} {ours}.site   # runs before Fairlead's",
            )


def lua_dangers(settings: HookSettings, job_submit: str | None) -> Iterator[Danger]:
    """The danger that the job_submit.lua beside slurm.conf, where there is one, does not call Fairlead's part."""
    if job_submit is not None and LUA in job_submit:
        return
    what = "does not call fairlead.lua" if job_submit is not None else "is not there"
    yield Danger(
        key="JobSubmitPlugins",
        what=f"job_submit.lua beside it {what}.",
        why="The scripts of jobs would run on the node, so the gate cancels them.",
        mend=f"copy {settings.folder}/{JOB_SUBMIT}, or call what it calls",
    )


def conf_dangers(conf: Mapping[str, str]) -> Iterator[Danger]:
    """Dangers in slurm.conf, by key in small letters, to jobs that run as pods, whatever the hooks."""
    prolog = conf.get("prolog", "")
    if prolog not in _NOTHING:
        yield Danger(
            key="Prolog",
            what=f"Prolog is {prolog}.",
            why="Where it fails, slurmd drains the node, and one node stands for all that Kubernetes has.",
            mend="let it end with 0 on the nodes of this partition",
        )
    mode = conf.get("preemptmode", "")
    if {"suspend", "gang"} & set(mode.lower().split(",")):
        yield Danger(
            key="PreemptMode",
            what=f"PreemptMode is {mode}.",
            why="Slurm stops the process that prints a suspended job's output. Its pod goes on, and keeps its GPUs.",
            mend="PreemptMode=REQUEUE or OFF at this partition",
        )
    flags = conf.get("prologflags", "")
    if "serial" in flags.lower().split(","):
        yield Danger(
            key="PrologFlags",
            what=f"PrologFlags is {flags}.",
            why="A node's hooks then run one after another, and each epilog waits until its pod is gone.",
            mend="leave Serial out",
        )
