"""Values of sbatch's options: what parses, and what it comes to. Rules are those of sbatch 22.05.8, tried one by one."""

import re
from collections.abc import Callable

_TIME = re.compile(r"-?\d+|\d+:\d+(:\d+)?|\d+-(\d+(:\d+){0,2})?")
_MEMORY = re.compile(r"(\d+)([KMGT]?)B?", re.IGNORECASE)
_COUNT = re.compile(r"\+?0*[1-9]\d*")
_NODES = re.compile(r"(\d+)([km]?)(?:-(\d+)([km]?))?", re.IGNORECASE)
_LATER_NODES = re.compile(r"[\d,:km-]*\d[km]?", re.IGNORECASE)
_ARRAY = re.compile(r"\[?(\d+(-\d+(:[1-9]\d*)?)?)(,\d+(-\d+(:[1-9]\d*)?)?)*\]?(%\d*)?")
_GRES = re.compile(r"(?:gres[:/])?([A-Za-z_][\w./-]*)(?::([A-Za-z_][\w.-]*))?(?::(\d+)([KMGTP]?))?")
_GPUS = re.compile(r"([A-Za-z_][\w.-]*)(?::(\d+))?|(\d+)")
_NICE = re.compile(r"[+-]?\d*")
_BEGIN = re.compile(r"[a-z]+|now[+-]\d+[a-z]+", re.IGNORECASE)
_BEGIN_TAKEN = re.compile(
    r"now|today|tomorrow|midnight|noon|elevenses|fika|teatime|now[+-]\d+(second|minute|hour|day|week)s?",
    re.IGNORECASE,
)
_MAIL_TYPES = {
    "none", "begin", "end", "fail", "requeue", "all", "stage_out", "time_limit", "time_limit_90", "time_limit_80",
    "time_limit_50", "array_tasks", "invalid_depend",
}  # fmt: skip
_SIGNAL_NAME = re.compile(r"(?:[^:]*:)?([a-z]\w*)(?:@.*)?", re.IGNORECASE)
_SIGNALS = (
    "HUP", "INT", "QUIT", "ABRT", "KILL", "ALRM", "TERM", "USR1", "USR2", "URG", "CONT", "STOP", "TSTP", "TTIN", "TTOU",
    "XCPU",
)  # fmt: skip
_HIGHEST_NICE = 2_147_483_645
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_ENDLESS = ("unlimited", "infinite", "-1", "0")


def seconds(text: str) -> int | None:
    """A time limit that parses: minutes, minutes:seconds, h:m:s, days-h, days-h:m, days-h:m:s; None for no limit."""
    if text.lower() in _ENDLESS or text.startswith("-"):
        return None
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":") if part]
    if dash:
        hours, minutes, left = (*parts, 0, 0, 0)[:3]
    else:
        # A number alone is minutes.
        hours, minutes, left = [0, *parts, 0][:3] if len(parts) == 1 else [0, *parts][-3:]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + left


def memory(text: str) -> int:
    """Bytes of an amount that parses; MiB where no unit is given."""
    found = _MEMORY.fullmatch(text)
    if found is None:
        return 0
    return int(found[1]) * _UNITS[found[2].upper() or "M"]


def count(text: str) -> int:
    """A number above 0; 1 where the option is not given."""
    return int(text) if text else 1


def fewest_nodes(text: str) -> int:
    """The fewest nodes of `2`, `2-4`, `1k`; 1 for what is more involved."""
    found = _NODES.fullmatch(text)
    return int(found[1]) * _UNITS[found[2].upper()] if found is not None else 1


def gres(text: str) -> dict[str, int]:
    """The resources of one node, by name or name and type: `gpu:h100:2,nvme` is {"gpu:h100": 2, "nvme": 1}."""
    counts = {}
    for part in text.split(","):
        found = _GRES.fullmatch(part)
        if found is not None and part.lower() != "none":
            name = f"{found[1]}:{found[2]}" if found[2] else found[1]
            counts[name] = int(found[3] or 1) * _UNITS[found[4] or ""]
    return counts


def gpus(text: str) -> dict[str, int]:
    """The GPUs of `8` or `h100:8`, by name as `gres` has it."""
    counts = {}
    for part in text.split(",") if text else ():
        found = _GPUS.fullmatch(part)
        if found is not None:
            counts[f"gpu:{found[1]}" if found[1] else "gpu"] = int(found[2] or found[3] or 1)
    return counts


def problem(name: str, text: str) -> str:
    """The fault of a value that does not parse; empty where it does, or where the option has no rule."""
    rule = _RULES.get(name)
    return rule(text) if rule is not None else ""


def is_taken_all_the_same(name: str, text: str) -> bool:
    """Whether Slurm takes a value that does not parse: words for `nice` as 0, and lists of node counts in a later release."""
    return (name == "nice" and _NICE.fullmatch(text) is None) or (name == "nodes" and _is_later_nodes(text))


def _time(text: str) -> str:
    if text.lower() in _ENDLESS or _TIME.fullmatch(text):
        return ""
    return "must be a time: minutes, hours:minutes:seconds or days-hours:minutes"


def _form(form: re.Pattern[str], fault: str, *, listed: bool = False) -> Callable[[str], str]:
    """A rule by which a value, or each part of a list, has this form; else this is its fault."""
    return lambda text: "" if all(map(form.fullmatch, text.split(",") if listed else [text])) else fault


def _nodes(text: str) -> str:
    found = _NODES.fullmatch(text)
    if found is None:
        later = _is_later_nodes(text)
        return (
            "is a list, which Slurm 22.05 refuses and later ones take"
            if later
            else "must be a number of nodes"
        )
    if found[3] and int(found[3]) * _UNITS[found[4].upper()] < int(found[1]) * _UNITS[found[2].upper()]:
        return "has a highest number below the lowest"
    return ""


def _is_later_nodes(text: str) -> bool:
    return _LATER_NODES.fullmatch(text) is not None and bool(set(text) & set(",:"))


def _begin(text: str) -> str:
    """The fault of a word, or of what is added to now; times and dates are left to sbatch."""
    if _BEGIN.fullmatch(text) is None or _BEGIN_TAKEN.fullmatch(text):
        return ""
    return "must be a time, as 16:00, 2030-01-20T12:00, tomorrow or now+2hours"


def _mail_type(text: str) -> str:
    """The fault of a list in which sbatch knows no word at all."""
    known = any(part.strip().lower() in _MAIL_TYPES for part in text.split(","))
    return (
        "" if known else "must be a list of BEGIN, END, FAIL, REQUEUE, TIME_LIMIT and the like, ALL or NONE"
    )


def _signal(text: str) -> str:
    found = _SIGNAL_NAME.fullmatch(text)
    known = found is None or found[1].upper().removeprefix("SIG") in _SIGNALS
    return "" if known else f"must be a number or one of {', '.join(_SIGNALS)}, as B:USR1@60"


def _array(text: str) -> str:
    if text and not _ARRAY.fullmatch(text):
        return "must be a list of tasks, as 1-10, 1-10:2, 1,3,5 or 1-100%8"
    for first, last in re.findall(r"(\d+)-(\d+)", text):
        if int(last) < int(first):
            return "has a range that ends before it begins"
    return ""


def highest_task(text: str) -> int:
    """The highest number of an array's tasks, in a form that parses."""
    return max((int(number) for number in re.findall(r"(?<![:%\d])\d+", text)), default=0)


def _nice(text: str) -> str:
    found = _NICE.fullmatch(text)
    if found is None:
        return "must be a whole number"
    number = int(text) if text.strip("+-") else 0
    if abs(number) > _HIGHEST_NICE:
        return "is out of range"
    return "is out of range: it may be negative for operators alone" if number < 0 else ""


_RULES: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("time", "time-min"), _time),
    **dict.fromkeys(
        ("mem", "mem-per-cpu", "mem-per-gpu", "tmp"),
        _form(_MEMORY, "must be an amount of memory: a whole number with K, M, G or T, as 1500M"),
    ),
    **dict.fromkeys(
        (
            "ntasks", "cpus-per-task", "cpus-per-gpu", "mincpus", "ntasks-per-node", "ntasks-per-core",
            "ntasks-per-socket", "ntasks-per-gpu",
        ),
        _form(_COUNT, "must be a number above 0"),
    ),
    **dict.fromkeys(
        ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"),
        _form(_GPUS, "must be a number of GPUs, as 2 or h100:2", listed=True),
    ),
    "nodes": _nodes,
    "begin": _begin,
    "mail-type": _mail_type,
    "signal": _signal,
    "array": _array,
    "gres": _form(_GRES, "must be a list of resources, as gpu:2 or gpu:h100:2", listed=True),
    "nice": _nice,
}  # fmt: skip
