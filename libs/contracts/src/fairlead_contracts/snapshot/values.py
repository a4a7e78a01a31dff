"""Single values of a snapshot: read into base units, and what is wrong with them told by their place in the file."""

import math
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime
from typing import cast

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import SECOND, Micros, from_datetime, from_seconds
from fairlead_contracts.base.quantities import MAX_QUANTITY, base_units, exponent_hint, parse_quantity
from fairlead_contracts.messages.state import HIGHEST_LEVEL
from fairlead_contracts.snapshot.gangs import AmountsReader, Fail

type EntryPlace = tuple[str, int, str]
"""List, position and field: where an entry of one of the snapshot's lists says something."""

MAX_NAME = 512
NO_NAME = f"must be 1 to {MAX_NAME} printable characters"
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, those that RFC 3339 can name."""
_LISTED = 20
_REMEMBERED = 8192
"""Different amounts of a resource, those that were met first: few enough to stay in a processor's cache."""


class _KnownAmounts(dict[str | int, int]):
    """Base units by what is written, of one resource. Others are read as they are asked for.

    Raises:
        FieldError: that is no amount.
    """

    def __init__(self, resource: str) -> None:
        super().__init__()
        self._resource = resource
        self._scale = base_units(resource)

    def of(self, column: Sequence[object]) -> list[int]:
        """The base units of many amounts.

        Raises:
            FieldError: one is no amount.
        """
        if set(map(type, column)) == {int}:
            whole = cast("Sequence[int]", column)
            if min(whole) >= 0 and max(whole) * self._scale <= MAX_QUANTITY:
                return [one * self._scale for one in whole]
        # True is no 1 here, and a decimal is read by its digits: neither may be taken for the integer it equals.
        texts = [repr(one) if type(one) is float else one for one in column]
        amounts = [self[one] for one in texts if type(one) is str or type(one) is int]
        if len(amounts) < len(column):
            raise FieldError("", None, "")
        return amounts

    def __missing__(self, written: str | int) -> int:
        amount = parse_quantity(self._resource, written, field="")
        if len(self) < _REMEMBERED:
            self[written] = amount
        return amount


class _AmountsByResource(dict[str, _KnownAmounts]):
    """The amounts that were met, by resource.

    Raises:
        FieldError: that is no name of a resource.
    """

    def __missing__(self, resource: str) -> _KnownAmounts:
        if not is_name(resource):
            raise FieldError("", resource, NO_NAME)
        found = self[resource] = _KnownAmounts(resource)
        return found


class SnapshotValues:
    """Reads single values, and collects the problems of a snapshot.

    Args:
        kept: positions in the file of the entries that are in it, by list; by default all are.
        pools: names that a pool may be called by.
        frontends: names that a frontend may be called by.

    Attributes:
        problems: all that were found.
        pools: the pools as given.
    """

    def __init__(
        self, kept: Mapping[str, list[int]], pools: set[str], frontends: Collection[str] = ()
    ) -> None:
        self.problems: list[FieldError] = []
        self.pools = pools
        self._frontends = frontends
        self._kept = kept
        self._amounts = _AmountsByResource()

    def telling(self, key: str, at: int) -> tuple[AmountsReader, Fail]:
        """The reader of the amounts in one entry's parts, and the function that tells their problems."""

        def amounts(name: str, found: Mapping[str, object]) -> dict[str, int]:
            return self.amounts((key, at, name), found)

        def fail(name: str, value: object, reason: str) -> None:
            self.fail((key, at, name), value, reason)

        return amounts, fail

    def amounts(
        self, place: EntryPlace, found: Mapping[str, object], most: int = MAX_QUANTITY
    ) -> dict[str, int]:
        """Quantities in base units; those that cannot be read, or are above `most`, are left out, with a problem."""
        known = self._amounts
        try:
            amounts = {
                resource: known[resource][value]
                for resource, value in found.items()
                # True is no 1 here, and a decimal is read by its digits: neither may be taken for the integer it equals.
                if type(value) is str or type(value) is int
            }
        except FieldError:
            amounts = {}
        return amounts if len(amounts) == len(found) else self._amounts_one_by_one(place, found, most)

    def column_of_amounts(self, resource: str, column: Sequence[object]) -> list[int]:
        """Quantities of one resource in base units, side by side.

        Raises:
            FieldError: the resource is none, or an amount cannot be read; nothing is told.
        """
        return self._amounts[resource].of(column)

    def _amounts_one_by_one(
        self, place: EntryPlace, found: Mapping[str, object], most: int
    ) -> dict[str, int]:
        key, at, name = place
        amounts = dict[str, int]()
        for resource, value in found.items():
            if not is_name(resource):
                self.check_name(place, resource)
            try:
                amounts[resource] = parse_quantity(resource, value, field="", most=most)
            except FieldError as error:
                self.fail((key, at, f"{name}.{resource}"), value, error.reason)
        return amounts

    def instants(self, found: Sequence[object], key: str, at: int, name: str) -> list[Micros | None]:
        """One field of several entries as instants, see `instant`.

        Args:
            found: the field of each entry.
            key: their list.
            at: the position of the first; as many as there are, problems are told of that one.
            name: the field's name.
        """
        numbers = [one for one in found if type(one) is float or type(one) is int]
        if len(numbers) == len(found) and all(FIRST_SECOND <= one < LAST_SECOND for one in numbers):
            return [round(one * SECOND) for one in numbers]
        texts = [one for one in found if type(one) is str]
        read = _instants_of(texts) if len(texts) == len(found) else None
        return [self.instant(one, key, at, name) for one in found] if read is None else list(read)

    def instant(self, found: object, key: str, at: int | None = None, name: str = "") -> Micros | None:
        """Unix seconds or RFC 3339 as an instant; None where nothing or nothing readable is there."""
        if type(found) is int and FIRST_SECOND <= found <= LAST_SECOND:
            return found * SECOND
        if found is None:
            return None
        if isinstance(found, float) and not math.isnan(found) and FIRST_SECOND <= found < LAST_SECOND:
            return from_seconds(found)
        if isinstance(found, str | datetime) and (read := _instants_of([found])):
            return read[0]
        field = key if at is None else self.field(key, at, name)
        reason = "must be a time: Unix seconds, or RFC 3339 with its offset, in the years 1 to 9999"
        if isinstance(found, date):  # as YAML reads one without quotes
            found, reason = found.isoformat(), f"{reason}: such as 2026-11-21T13:00:00Z, or +01:00 for the Z"
        self.problems.append(FieldError(field, found, reason + exponent_hint(found)))
        return None

    def check_name(self, place: EntryPlace, name: str) -> bool:
        """Whether a name can be one."""
        good = is_name(name)
        if not good:
            self.fail(place, name, NO_NAME)
        return good

    def named(self, key: str, at: int, name: str, found: str | None) -> str:
        """The name of a queue or cluster; empty where none is given."""
        if found is not None:
            self.check_name((key, at, name), found)
        return found or ""

    def frontend(self, key: str, at: int, found: str | None) -> str:
        """The frontend; empty where none is given."""
        if found is not None and found not in self._frontends:
            known = ", ".join(self._frontends)
            reason = f"is not a frontend; frontends are {known}, and those of a queue in `queues` that says its `capabilities`"
            self.fail((key, at, "frontend"), found, reason)
        return found or ""

    def check_pool(self, key: str, at: int, pool: str) -> bool:
        """Whether a pool is one of the snapshot's; tells it where it is not."""
        known = pool in self.pools
        if not known:
            self.fail((key, at, "pool"), pool, f"is not a pool; pools are {listed(self.pools)}")
        return known

    def refuse_twice(self, key: str, names: list[str]) -> None:
        """Reports each name that is given twice."""
        seen: set[str] = set()
        for at, name in enumerate(names):
            if name in seen:
                self.fail((key, at, "name"), name, "is named twice")
            seen.add(name)

    def fail(self, place: EntryPlace, value: object, reason: str) -> None:
        """Tells a problem."""
        self.problems.append(FieldError(self.field(*place), value, reason))

    def field(self, key: str, at: int, name: str) -> str:
        """The field as a path in the file."""
        kept = self._kept.get(key)
        return f"{key}[{at if kept is None else kept[at]}].{name}"

    def check_resources(
        self, place: EntryPlace, found: Mapping[str, object], pool: str, known: AbstractSet[str] | None
    ) -> None:
        """Checks that each resource is one of the pool's: another would count for nothing.

        Args:
            place: where the amounts stand.
            found: amounts by resource.
            known: the pool's resources; None where they are not known.
        """
        if known is None or found.keys() <= known:
            return
        key, at, name = place
        for resource in sorted(found.keys() - known):
            reason = f"is not a resource of pool {pool!r}, which has {listed(known)}; state it there as 0 if it has none"
            self.fail((key, at, f"{name}.{resource}"), found[resource], reason)


def _instants_of(texts: Sequence[str | datetime]) -> list[Micros] | None:
    """Texts, or times without quotes in YAML, as instants; None where one is none."""
    try:
        # The type that asks for an offset takes seven times as long.
        moments = msgspec.convert(texts, list[datetime])
        if not all(moment.tzinfo for moment in moments):
            return None
        instants = list(map(from_datetime, moments))
    except (msgspec.ValidationError, OverflowError, UnicodeEncodeError):
        return None
    # An offset may lead out of the years.
    is_named = min(instants) >= FIRST_SECOND * SECOND and max(instants) < (LAST_SECOND + 1) * SECOND
    return instants if is_named else None


def are_names(names: Collection[str]) -> bool:
    """Whether each of them can be one."""
    return "" not in names and max(map(len, names)) <= MAX_NAME and "".join(names).isprintable()


def is_name(name: str) -> bool:
    """Whether a name can be one."""
    return 0 < len(name) <= MAX_NAME and name.isprintable()


def listed(names: Collection[str]) -> str:
    """Names as a sentence has them: the first of them."""
    shown = sorted(names)[:_LISTED]
    return (", ".join(shown) + (", …" if len(names) > len(shown) else "")) or "none"


def check_level(name: str, level: int, fail: Fail) -> None:
    """Whether a frontend can have the level."""
    if abs(level) > HIGHEST_LEVEL:
        fail(name, level, f"must lie between -{HIGHEST_LEVEL} and {HIGHEST_LEVEL}")
