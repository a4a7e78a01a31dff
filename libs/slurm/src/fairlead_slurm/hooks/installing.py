"""The files that make a partition's jobs run as pods: hooks, job_submit's part, and lines for slurm.conf. Text by file name."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from fairlead_slurm.licences import LicenceName

PROGRAM = "fairlead-gate.py"
RESULTS = "fairlead-results.py"
LUA = "fairlead.lua"
JOB_SUBMIT = "job_submit.lua"
CONF = "slurm.conf.add"
PROLOG_SLURMCTLD, EPILOG_SLURMCTLD, EPILOG = "prolog-slurmctld", "epilog-slurmctld", "epilog"
_HOOKS = {PROLOG_SLURMCTLD: "prolog", EPILOG_SLURMCTLD: "epilog-slurmctld", EPILOG: "epilog"}
HOOK_KEYS = {"PrologSlurmctld": PROLOG_SLURMCTLD, "EpilogSlurmctld": EPILOG_SLURMCTLD, "Epilog": EPILOG}
"""Keys of slurm.conf, each with the file that it runs."""
REQUEUE_EXIT = 75
NO_HOLD = "nohold_on_prolog_fail"
"""Word of SchedulerParameters that lets Slurm put a refused job back into the queue.

slurmd refuses a job that it takes for running already, as after a slurmctld that was killed and has forgotten
its last seconds; without this word Slurm then holds the job until an administrator releases it
(slurmd/req.c)."""
ALLOW_NONE = "allow_zero_lic"
"""Word of SchedulerParameters without which Slurm refuses jobs that ask for more tokens than there are at
their submission."""
CONF_LISTS = ("JobSubmitPlugins", "RequeueExit", "SchedulerParameters")
"""Keys of slurm.conf that hold words of a site's own, too; of several lines the last counts alone."""
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ENDPOINT = re.compile(r"([\w.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):\d{1,5}", re.ASCII)
_KILL_WAIT = 60
"""Seconds from SIGTERM to SIGKILL: more than a pod's time to end (`pods_stop_seconds`), so that its last output arrives."""
_BEFORE_TIMEOUT = 20
"""Seconds before PrologEpilogTimeout at which a hook gives up by itself: slurmctld kills, and slurmd drains the node."""


class HookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the hooks that `install` writes."""

    folder: str
    """Folder of the files, as Slurm's daemons and users see it: the same on all hosts."""
    partition: str
    socket: str
    python: str
    away: str = "requeue"
    """Word for what a prolog does while the gate is away: `requeue` or `start`."""
    check: bool = True
    """Whether job_submit has the gate look jobs over before they stand."""
    timeout: int = 300
    """PrologEpilogTimeout, in seconds."""
    endpoints: Sequence[str] = ()
    """Gates, as `HOST:PORT`, that the hooks ask over TLS, each in turn, instead of the socket."""
    authority: str = ""
    """File of the authority that those gates' certificates are of; empty for the host's own authorities."""
    munge_socket: str = ""
    """Socket of munged; empty where it is the one that munge's commands look for."""
    tokens: str = ""
    """Licence of accounting's, `NAME@SERVER`, of which each job takes one for each of its GPUs; empty for none."""
    variables: Sequence[str] = ("TRACEPARENT",)
    """Names of variables that every pod gets from the environment of its submission."""

    def __post_init__(self) -> None:
        """Refuse what cannot be written down safely.

        Raises:
            ValueError: a word cannot; says which, and why.
        """
        paths = {"folder": self.folder, "socket": self.socket, "python": self.python}
        given = {"ca": self.authority, "munge-socket": self.munge_socket}
        for name, text in (*paths.items(), *((name, text) for name, text in given.items() if text)):
            if not text.startswith("/") or any(ord(letter) < ord(" ") for letter in text):
                raise ValueError(f"{name} has to be an absolute path in one line: {text!r}")
        if re.search(r"[\s#\"'\\,]", self.folder):
            raise ValueError(f"slurm.conf takes no path with blanks, quotes or commas: {self.folder!r}")
        if _NAME.fullmatch(self.partition) is None:
            raise ValueError(f"{self.partition!r} is no name of a partition")
        _all_match(_VARIABLE, self.variables, "a name of a variable")
        _all_match(_ENDPOINT, self.endpoints, "HOST:PORT")
        if self.tokens:
            LicenceName.read(self.tokens)
        if self.away not in ("requeue", "start"):
            raise ValueError(f"away is requeue or start, not {self.away!r}")


def _all_match(form: re.Pattern[str], words: Sequence[str], what: str) -> None:
    for word in words:
        if form.fullmatch(word) is None:
            raise ValueError(f"{word!r} is not {what}")


class HookFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that `install` writes."""

    text: str
    executable: bool = False


def hook_files(settings: HookSettings, conf: Mapping[str, str] | None = None) -> dict[str, HookFile]:
    """All files of the hooks, by name within the folder; `conf` is the site's slurm.conf, by key in small letters."""
    program = shlex.quote(f"{settings.folder}/{PROGRAM}")
    # -I and -S: nothing of the user's environment or of site-packages is looked at, which also makes it quick.
    start = f"{shlex.quote(settings.python)} -I -S {program}"
    found = {
        name: HookFile(
            text=_hook(shlex.quote(f"{settings.folder}/{name}.site"), start, hook), executable=True
        )
        for name, hook in _HOOKS.items()
    }
    found[PROGRAM] = HookFile(text=_program(settings), executable=True)
    found[RESULTS] = HookFile(text=_shipped("results.py"))
    check = f"{start} submit 2>/dev/null" if settings.check else ""
    found[LUA] = HookFile(text=_lua(settings, f"exec {start} body", check))
    found[JOB_SUBMIT] = HookFile(text=_job_submit(settings))
    found[CONF] = HookFile(text=_conf(settings, conf))
    return found


def pods_partition(prolog: str) -> str | None:
    """The partition whose jobs run as pods, by the hooks that lie beside PrologSlurmctld; None where they are not Fairlead's."""
    return _installed(prolog, "PARTITION")


def pods_tokens(prolog: str) -> str | None:
    """The licence of which pods' jobs take one for each GPU, by the hooks beside PrologSlurmctld; None where they take none."""
    return _installed(prolog, "TOKENS")


def asks_over_tls(prolog: str) -> bool:
    """Whether the hooks beside PrologSlurmctld ask at endpoints over TLS, and not at the socket of their own host."""
    try:
        text = (Path(prolog).parent / PROGRAM).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return re.search(r"^ENDPOINTS = \('", text, re.MULTILINE) is not None


def _installed(prolog: str, name: str) -> str | None:
    if not prolog.endswith(f"/{PROLOG_SLURMCTLD}"):
        return None
    try:
        text = (Path(prolog).parent / LUA).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(rf'^local {name} = "([\w.@-]+)"', text, re.MULTILINE)
    return None if found is None else found[1]


def conf_lines(settings: HookSettings) -> dict[str, str]:
    """Lines that the hooks need in slurm.conf, by key."""
    return {
        **{key: f"{settings.folder}/{name}" for key, name in HOOK_KEYS.items()},
        "JobSubmitPlugins": "lua",
        "PrologEpilogTimeout": str(settings.timeout),
        "BatchStartTimeout": str(2 * settings.timeout),
        "KillWait": str(_KILL_WAIT),
        "RequeueExit": str(REQUEUE_EXIT),
        "JobRequeue": "1",
        "SchedulerParameters": ",".join((NO_HOLD, ALLOW_NONE) if settings.tokens else (NO_HOLD,)),
    }


def merged(found: str, words: str) -> str:
    """A list of slurm.conf, with those of the words that it lacks behind its own."""
    has = [word for word in found.split(",") if word and word != "(null)"]
    return ",".join([*has, *(word for word in words.split(",") if word not in has)])


def _hook(site: str, start: str, hook: str) -> str:
    """A hook's shell script: the site's own runs first, and may fail; Fairlead's epilog never does."""
    about = "# Written by `fairlead slurm install`. A hook of the site's own, beside this one with `.site` at its end, runs first."
    if hook == "prolog":
        lines = [f"if [ -x {site} ]; then {site} || exit; fi", f"exec {start} {hook}"]
    else:
        lines = ["code=0", f"if [ -x {site} ]; then {site} || code=$?; fi", f"{start} {hook}", "exit $code"]
    return "\n".join(["#!/bin/sh", about, *lines, ""])


def _conf(settings: HookSettings, conf: Mapping[str, str] | None) -> str:
    wanted = conf_lines(settings)
    lines = [f"{key}={value}" for key, value in wanted.items() if key not in CONF_LISTS]
    if conf is None:
        lists = [
            "# Of lists that a site has already the last line would count alone: add the words to yours.",
            *(f"{key}={wanted[key]}" for key in CONF_LISTS if key != "SchedulerParameters"),
            f"# SchedulerParameters=...,{wanted['SchedulerParameters']}",
        ]
    else:
        lists = [
            "# Lists, with the words that slurm.conf had when this was written:",
            *(f"{key}={merged(conf.get(key.lower(), ''), wanted[key])}" for key in CONF_LISTS),
        ]
    more = [
        "# Lines for slurm.conf, beside what it has. Restart slurmctld afterwards, and `scontrol reconfigure` for slurmd.",
        "# `fairlead slurm check` says which of them are missing.",
        *lines,
        *lists,
        "# The nodes of the partition stand for what Kubernetes has; one is enough, on slurmctld's host or another:",
        f"# PartitionName={settings.partition} Nodes=... MaxNodes=1 OverSubscribe=NO State=UP",
    ]
    return "\n".join(more) + "\n"


def _program(settings: HookSettings) -> str:
    munge = ("munge", f"--socket={settings.munge_socket}") if settings.munge_socket else ("munge",)
    values = {
        "SOCKET": settings.socket,
        "CA": settings.authority,
        "MUNGE": munge,
        "AWAY": settings.away,
        "SECONDS": float(settings.timeout - _BEFORE_TIMEOUT),
    }
    text = _shipped("client.py")
    for name, value in values.items():
        text = _replaced(text, rf"^{name} = .*$", f"{name} = {value!r}")
    text = _replaced(text, r"^ENDPOINTS: .*$", f"ENDPOINTS = {tuple(settings.endpoints)!r}")
    return f"#!{settings.python}\n{text}"


def _lua(settings: HookSettings, body: str, check: str) -> str:
    names = ", ".join(map(_quoted, settings.variables))
    values = {
        "PARTITION": _quoted(settings.partition),
        "BODY": _quoted(body),
        "CHECK": _quoted(check),
        "TOKENS": _quoted(settings.tokens),
        "VARIABLES": f"{{{names}}}",
    }
    text = _shipped(LUA).replace("FOLDER", settings.folder)
    for name, value in values.items():
        text = _replaced(text, rf"^local {name} = .*$", f"local {name} = {value}")
    return text


def _job_submit(settings: HookSettings) -> str:
    example = re.search(r"^--   dofile(?:.*\n)(?:--   .*\n)+", _lua(settings, "", ""), re.MULTILINE)
    assert example is not None  # noqa: S101 # shipped so
    lines = [line.removeprefix("--   ") for line in example[0].splitlines()]
    return (
        "-- For a cluster without a job_submit.lua of its own: it belongs beside slurm.conf.\n"
        + "\n".join([*lines, 'slurm.log_info("fairlead: loaded")', "return slurm.SUCCESS", ""])
    )


def _shipped(name: str) -> str:
    return files("fairlead_slurm.hooks").joinpath(name).read_text(encoding="utf-8")


def _replaced(text: str, form: str, line: str) -> str:
    found, count = re.subn(form, lambda _: line, text, count=1, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"nothing to replace for {line!r}")
    return found


def _quoted(text: str) -> str:
    """A string of Lua's, written as JSON: Lua 5.1 reads its escapes, but none for letters beyond ASCII."""
    return json.dumps(text, ensure_ascii=False)
