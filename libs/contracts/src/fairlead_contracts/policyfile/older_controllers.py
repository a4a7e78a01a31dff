"""Configurations of the two controllers that Fairlead takes the place of, as policy documents.

- The DRF controller (github.com/Godmook/DRF_Controller): a ConfigMap, or its `data` alone, with `aging_alpha` (share a
  second), `max_aging_hours`, and `priority_weights` or `approved_weight` and `normal_weight`.
- The WDRF controller (github.com/Godmook/GPU_Controller): a config.yaml, the environment, or a ConfigMap that makes
  it, with `AGING_COEFFICIENT` (share a second), `MAX_AGING_TIME` (seconds), `PRIORITY_WEIGHTS` and `RESOURCE_WEIGHTS`.

The keys tell which one it is.

What they leave out has the value that their authors gave it. Neither knows tenants: all have weight 1. Keys that say
nothing of an order (intervals, log levels, names of queues) are settings of services and are passed over.
"""

import json
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, InvalidOperation
from difflib import get_close_matches
from typing import NamedTuple

from fairlead_contracts.base.errors import FieldError, shown
from fairlead_contracts.frontend.cards import CARD_MEMORY, CARD_MEMORY_PERCENT
from fairlead_contracts.policyfile.document import PRESETS

_DRF_KEYS = ("aging_alpha", "max_aging_hours", "priority_weights", "approved_weight", "normal_weight")
_DRF_SETTINGS = (
    "check_interval",
    "gang_scheduling_enabled",
    "kueue_enabled",
    "kueue_namespace",
    "log_level",
    "queue_name",
    "resource_types",
    "scheduling_interval",
)
_WDRF_KEYS = ("AGING_COEFFICIENT", "MAX_AGING_TIME", "PRIORITY_WEIGHTS", "RESOURCE_WEIGHTS")
_WDRF_SETTINGS = (
    "KUBECONFIG_PATH",
    "LOG_LEVEL",
    "LOOP_INTERVAL",
    "METRICS_ENABLED",
    "METRICS_PORT",
    "NAMESPACE",
)
_EXAMPLES = {
    "priority_weights": '{"urgent": 0, "normal": 1000}',
    "PRIORITY_WEIGHTS": '{"urgent": 1000, "approved": 100, "normal": 1}',
    "RESOURCE_WEIGHTS": '{"cpu": 1, "nvidia.com/gpu": 1}',
}
"""Examples of a mapping where all values are text, as in a ConfigMap."""
_WDRF_WEIGHTS = {"urgent": 1000.0, "approved": 100.0, "normal": 1.0}
_HOURS_A_DAY, _SECONDS_A_DAY = 24, 86_400
_LIKENESS = 0.7
"""Likeness (difflib's ratio) from which on a variable is taken for one of the controller's, misspelled."""
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Z][A-Z0-9_]*)=(.*)")

type Plain = dict[object, object]
type Problems = list[FieldError]

_UNBOUNDED = Context(traps=[])
"""Context that counts a number beyond all others as infinite: the document's bounds refuse it."""
_OF_NULL = "; leave it null for no cap"
"""Hint of the document about its cap, which the older formats do not know."""


class Origin(NamedTuple):
    """The key of an older file that a key of the document was made from."""

    key: str
    value: object
    counted: str = ""
    """The unit that the document counts it in, where that is another one."""

    def by_file_keys(self, problem: FieldError) -> FieldError:
        """The problem of the document's key, by the file's own key and value."""
        reason = problem.reason.removesuffix(_OF_NULL)
        if self.counted:
            reason = f"is {shown(problem.value)} {self.counted}, which {reason}"
        return FieldError(self.key, self.value, reason)


class Translation(NamedTuple):
    """A file in the words of the policy document."""

    keys: Mapping[object, object]
    problems: Problems
    """Problems of the file that the keys no longer show, told by the keys of the file."""
    origins: Mapping[str, Origin]
    """Origins in the file by key of the document; empty where the file is a policy document."""

    def by_file_keys(self, problems: Problems) -> Problems:
        """All problems, named by the file's own keys: its own, and these of the document made from it."""
        if not self.origins:
            return [*self.problems, *problems]
        found = {str(problem): problem for problem in self.problems}
        for problem in problems:
            origin = self.origins.get(problem.field)
            told = problem if origin is None else origin.by_file_keys(problem)
            # Two keys of the document may come from one of the file.
            found.setdefault(str(told), told)
        return list(found.values())


def from_environment(text: str) -> Plain | None:
    """The variables of an environment file, `KEY=value` a line; None where the text is none of the WDRF controller."""
    lines = [line.strip() for line in text.splitlines()]
    found = [_ASSIGNMENT.fullmatch(line) for line in lines if line and not line.startswith("#")]
    variables: Plain = {match[1]: match[2].strip("'\" ") for match in found if match is not None}
    return _apart(variables) if None not in found and _is_wdrf(variables) else None


def _is_wdrf(keys: Mapping[object, object]) -> bool:
    return any(key in keys for key in (*_WDRF_KEYS, "LOOP_INTERVAL"))


def _apart(variables: Plain) -> Plain:
    """The variables without other programs': an environment is shared. A key that looks misspelled stays."""
    ours = (*_WDRF_KEYS, *_WDRF_SETTINGS)
    return {
        name: value
        for name, value in variables.items()
        if get_close_matches(str(name), ours, cutoff=_LIKENESS)
    }


def in_our_words(found: Mapping[object, object]) -> Translation:
    """An older configuration as a policy document's keys; any other mapping as it is.

    What cannot be read has its default, so that the problems of the rest are found, too.
    """
    data = found.get("data") if found.get("kind") == "ConfigMap" else found
    if not isinstance(data, Mapping):
        wrong = FieldError("data", data, "must be a mapping: the ConfigMap of an older controller")
        return Translation({}, [wrong], {})
    inside = data is not found
    where = "data." if inside else ""
    if any(key in data for key in _DRF_KEYS) or (inside and not _is_wdrf(data)):
        reader = _StringReader(data, where)
        return Translation(_drf(reader), reader.problems, reader.origins)
    if _is_wdrf(data):
        reader = _StringReader(_apart({**data}) if inside else data, where)
        return Translation(_wdrf(reader), reader.problems, reader.origins)
    return Translation(found, [], {})


def _drf(reader: "_StringReader") -> Plain:
    reader.refuse_others(_DRF_KEYS, _DRF_SETTINGS, str.lower)
    alpha = reader.number("aging_alpha", Decimal("0.1"), "aging.entitlement_per_day", "a day")
    hours = reader.number("max_aging_hours", Decimal(336), "aging.cap_days", "days")
    weights = reader.weights("priority_weights", "class_weights")
    if weights is None:
        urgent, normal = (
            reader.number("approved_weight", Decimal(0), "class_weights.urgent"),
            reader.number("normal_weight", Decimal(1000), "class_weights.normal"),
        )
        weights = {"urgent": float(urgent), "normal": float(normal)}
    # Lower goes first.
    classes = sorted(weights, key=lambda name: (weights[name], name))
    reader.named("priority_weights", classes)
    return {
        **PRESETS["drf"],
        "classes": classes,
        "class_weights": weights,
        "aging": _aging(alpha, _UNBOUNDED.divide(hours, Decimal(_HOURS_A_DAY))),
        "unlisted_weight": 1,
    }


def _wdrf(reader: "_StringReader") -> Plain:
    reader.refuse_others(_WDRF_KEYS, _WDRF_SETTINGS, str.upper)
    alpha = reader.number("AGING_COEFFICIENT", Decimal("0.1"), "aging.entitlement_per_day", "a day")
    seconds = reader.number("MAX_AGING_TIME", Decimal(3600), "aging.cap_days", "days")
    weights = reader.weights("PRIORITY_WEIGHTS", "class_weights") or dict(_WDRF_WEIGHTS)
    resources = reader.weights("RESOURCE_WEIGHTS", "resource_weights") or {}
    if CARD_MEMORY_PERCENT in resources and CARD_MEMORY not in resources:
        # Where nodes register cards, percentages of their memory are counted as memory.
        resources[CARD_MEMORY] = resources[CARD_MEMORY_PERCENT]
        percent = reader.origins[f"resource_weights.{CARD_MEMORY_PERCENT}"]
        reader.origins[f"resource_weights.{CARD_MEMORY}"] = percent
    # Higher goes first: the share is divided by it.
    classes = sorted(weights, key=lambda name: (-weights[name], name))
    reader.named("PRIORITY_WEIGHTS", classes)
    return {
        **PRESETS["wdrf"],
        "classes": classes,
        "class_weights": weights,
        "resource_weights": resources,
        "aging": _aging(alpha, _UNBOUNDED.divide(seconds, Decimal(_SECONDS_A_DAY))),
        "unlisted_weight": 1,
    }


def _aging(alpha: Decimal, days: Decimal) -> Plain:
    """The keys of aging: alpha is share a second, over the weight. Waiting that counts for no time at all counts nothing."""
    if not days:
        return {"entitlement_per_day": 0}
    daily = _UNBOUNDED.multiply(alpha, Decimal(_SECONDS_A_DAY))
    return {"entitlement_per_day": float(daily), "cap_days": float(days)}


class _StringReader:
    """Reads values that a ConfigMap or an environment may only have as strings."""

    def __init__(self, data: Mapping[object, object], where: str) -> None:
        self.problems: Problems = []
        self.origins: dict[str, Origin] = {}
        self._data = data
        self._where = where

    def number(self, key: str, default: Decimal, ours: str, counted: str = "") -> Decimal:
        """A number from 0; the default, and a problem, where it is none.

        Args:
            default: the value that its authors took.
            ours: the document's key that it becomes.
            counted: the document's unit, where that is another one.
        """
        if key not in self._data:
            return default
        self._came(ours, key, self._data[key], counted)
        found = _number(self._data[key])
        if found is None:
            self._refuse(key, self._data[key], "must be a number from 0")
            return default
        return found

    def weights(self, key: str, ours: str) -> dict[str, float] | None:
        """Numbers by name, as the document's key; None where there are none."""
        found = self._data.get(key)
        if isinstance(found, str):
            found = _mapping_of(found)
        if key not in self._data:
            return None
        self._came(ours, key, self._data[key])
        if not isinstance(found, Mapping) or not found:
            reason = (
                f"must give a number to each name: write JSON, as {_EXAMPLES[key]}, or `name: number` a line"
            )
            self._refuse(key, self._data[key], reason)
            return None
        weights = {}
        for name, value in found.items():
            number = _number(value)
            self._came(f"{ours}.{name}", f"{key}.{name}", value)
            if number is None:
                self._refuse(f"{key}.{name}", value, "must be a number from 0")
            else:
                weights[str(name)] = float(number)
        return weights or None

    def named(self, key: str, classes: list[str]) -> None:
        """Notes that the classes come from the names in this key."""
        self._came("classes", key, self._data.get(key))
        for at, name in enumerate(classes):
            self._came(f"classes[{at}]", f"{key}.{name}", name)

    def refuse_others(
        self, keys: tuple[str, ...], settings: tuple[str, ...], form: Callable[[str], str]
    ) -> None:
        """Reports keys that are not known: a misspelled one is an error, not a silent default."""
        for key, value in self._data.items():
            if key not in keys and form(str(key)) not in settings:
                self._refuse(str(key), value, f"is not a key here; keys are {', '.join(sorted(keys))}")

    def _came(self, ours: str, key: str, value: object, counted: str = "") -> None:
        self.origins[ours] = Origin(f"{self._where}{key}", value, counted)

    def _refuse(self, key: str, value: object, reason: str) -> None:
        self.problems.append(FieldError(f"{self._where}{key}", value, reason))


def _number(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        # Python prints no integer of more than 4300 digits.
        found = Decimal(value) if isinstance(value, int) else Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None


def _mapping_of(text: str) -> object:
    """JSON, or `name: number` a line, as a ConfigMap has it: its values are strings."""
    try:
        parsed: object = json.loads(text)
    except ValueError:
        lines = [line.partition(":") for line in text.splitlines() if line.strip()]
        if text.lstrip().startswith("{") or not all(colon for _, colon, _ in lines):
            return text
        return {name.strip(): value.strip() for name, _, value in lines}
    return parsed
