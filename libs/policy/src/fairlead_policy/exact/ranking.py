"""One sort by (class, infinite, key, submitted, uid), exact.

Floats sort first, as they are fast; wherever two neighbours are closer than rounding could have moved them, integers
decide. So the order is the order of the exact fractions, whatever the floats were.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairlead_contracts.base.instants import Micros
from fairlead_policy.rules.pool_rules import NOTHING, PoolRules

type Ints = NDArray[np.int64]
type Floats = NDArray[np.float64]
type Flags = NDArray[np.bool_]
type TieBreak = tuple[str, int]
"""Tie of jobs with equal keys and submit instants: the uid that a job counts by, and its position there."""
type Names = NDArray[np.object_]
"""Strings by reference: picking many of them is then one call."""

FLOAT_DOUBT = 2.0**-45
"""The difference, as a part of the larger terms, below which floats do not tell two keys apart: each is rounded a few
times, by 2^-53 of its terms."""

# A key is rounded at most eight times, each by 2^-53 of it at most, since all its terms are at least 0. Two keys whose
# floats differ by more than 2^-48 of the larger are in their true order; tiny numbers lose more and are always near.
_NEAR = 2.0**-48
_TINY = 1e-290
_LONGEST_DENOMINATOR = 2048
"""Bits of the longest common denominator that is used: it makes exact keys plain integers, but a pool of thousands of
odd weights would make it huge."""

_FEW = 16
"""Largest count of numbers that Python bounds faster than numpy."""


def warm_up() -> None:
    """Makes numpy load masked arrays now, which `unique` loads at its first use: 0.1 s amid the first reaction else."""
    np.unique(np.empty(0, np.int64))


def bounded(stated: list[int], least: int, most: int) -> Ints:
    """The numbers within bounds; facts may be larger than 64 bits hold."""
    if len(stated) <= _FEW:
        return np.array([min(max(one, least), most) for one in stated], np.int64)
    try:
        found = np.array(stated, np.int64)
        return np.clip(found, least, most, out=found)
    except OverflowError:
        return np.array([min(max(one, least), most) for one in stated], np.int64)


def ratio(numerator: int, denominator: int) -> float:
    """The float nearest to a fraction: the same for every way to write it. Too large ones give the largest float."""
    try:
        return numerator / denominator
    except OverflowError:
        return sys.float_info.max


def nearest_float(exact: Fraction) -> float:
    """The float nearest to an exact number, as `ratio` finds it."""
    return ratio(exact.numerator, exact.denominator)


class Multipliers:
    """Numbers distinct fractions, `v_r / c_r / w_i` and others, so that arrays can hold them. Number 0 is zero."""

    def __init__(self) -> None:
        self.exact: list[Fraction] = [NOTHING]
        self._numbers = {NOTHING.as_integer_ratio(): 0}
        """Numbers by numerator and denominator: these are hashed at a tenth of a fraction's price."""

    def number(self, multiplier: Fraction) -> int:
        """The multiplier's number."""
        terms = multiplier.as_integer_ratio()
        found = self._numbers.get(terms)
        if found is None:
            found = self._numbers[terms] = len(self.exact)
            self.exact.append(multiplier)
        return found


@dataclass(frozen=True, slots=True)
class Rows:
    """Jobs as columns of equal length: the terms that their order depends on, but the uid."""

    rank: Ints
    """Number that goes before the key: class, blocked, infinite share; see `PoolRules.leading`."""
    use: Ints
    """Use of the dominant resource, base units; 0 where the share is infinite or there is none."""
    multiplier: Ints
    """Number of the dominant resource's multiplier; 0 where use is 0."""
    tag: Floats
    """Tag, `use * multiplier`, rounded."""
    submitted: Ints
    offset: Ints | None = None
    """Number of what the key is raised by, the weight of an additive class; None where nothing is."""

    def __len__(self) -> int:
        return len(self.rank)

    def take(self, rows: Ints | slice) -> "Rows":
        """The rows at these positions, in that order."""
        return Rows(
            self.rank[rows],
            self.use[rows],
            self.multiplier[rows],
            self.tag[rows],
            self.submitted[rows],
            None if self.offset is None else self.offset[rows],
        )


def join(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, one after the other."""
    if not parts:
        empty = np.empty(0, np.int64)
        return Rows(empty, empty, empty, np.empty(0), empty)
    if len(parts) == 1:
        return parts[0]
    offset = None
    if parts[0].offset is not None:
        offset = np.concatenate(
            [np.zeros(len(part), np.int64) if part.offset is None else part.offset for part in parts]
        )
    return Rows(
        np.concatenate([part.rank for part in parts]),
        np.concatenate([part.use for part in parts]),
        np.concatenate([part.multiplier for part in parts]),
        np.concatenate([part.tag for part in parts]),
        np.concatenate([part.submitted for part in parts]),
        offset,
    )


class EffectiveTies(NamedTuple):
    """Ties of rows that may count by the uid of another, as far as they are known without looking at uids."""

    effective: Ints
    """Number of the uid that each row counts by: the same for rows that count by the same uid."""
    position: Ints
    """Number of each row that settles the order among those which count by the same uid."""

    def take(self, rows: Ints) -> "EffectiveTies":
        """The ties of the rows at these positions."""
        return EffectiveTies(self.effective[rows], self.position[rows])


def unaged(rows: Rows, multipliers: Multipliers) -> Floats:
    """The keys of rows without their waiting, rounded."""
    if rows.offset is None:
        return rows.tag
    found: Floats = rows.tag + np.array(list(map(nearest_float, multipliers.exact)))[rows.offset]
    return found


def exactly_unaged(rows: Rows, row: int, multipliers: Multipliers) -> Fraction:
    """The key of a row without its waiting."""
    tag = rows.use.item(row) * multipliers.exact[rows.multiplier.item(row)]
    return tag if rows.offset is None else tag + multipliers.exact[rows.offset.item(row)]


def aged_at(submitted: Ints, rules: PoolRules, now: Micros) -> Ints:
    """The instants that waiting counts from, as `PoolRules.aged` of each."""
    if rules.cap is None:
        return submitted
    aged: Ints = np.maximum(submitted, now - rules.cap)
    return aged


class Ranking:
    """Puts rows in their order at one instant.

    Args:
        rows: the rows of any number of tenants.
        rules: aging rate and cap.
        multipliers: those that the rows refer to.
        now: the instant that the cap is measured from.
    """

    def __init__(self, rows: Rows, rules: PoolRules, multipliers: Multipliers, now: Micros) -> None:
        self._rows = rows
        self._rules = rules
        self._multipliers = multipliers
        self._aged = aged_at(rows.submitted, rules, now)
        self._keys = self._rounded_keys()

    def order(self, tie_of: Callable[[int], TieBreak], effective_ties: EffectiveTies | None = None) -> Ints:
        """The rows' numbers, first job first.

        Args:
            tie_of: the uid that a row counts by, and its position among those that count by it; asked only where
                everything else is equal, or cannot be told apart by floats.
            effective_ties: the same as numbers, where many rows count by few uids.
        """
        order = self._roughly_sorted()
        near = self._near(order)
        if near.any():
            _settle(order, near, self, _Ties(tie_of, effective_ties))
        return order

    def likely_first(self, count: int) -> Ints:
        """Numbers of rows among which the first `count` are for certain; few more where few keys tie."""
        if len(self._rows) <= count:
            return np.arange(len(self._rows))
        rank = self._rows.rank
        last = np.partition(rank, count - 1)[count - 1]
        before, among = np.flatnonzero(rank < last), np.flatnonzero(rank == last)
        keys = self._keys[among]
        limit = np.partition(keys, count - len(before) - 1)[count - len(before) - 1]
        close = among[keys <= limit + 2 * _NEAR * limit + _TINY]
        return np.concatenate((before, close))

    def same_tag(self, left: Ints, right: Ints) -> Flags:
        """Whether pairs of rows surely have the same tag."""
        rows = self._rows
        same: Flags = (rows.use[left] == rows.use[right]) & (rows.multiplier[left] == rows.multiplier[right])
        if rows.offset is not None:
            same &= rows.offset[left] == rows.offset[right]
        return same

    def submitted(self, rows: Ints) -> Ints:
        """The submit instants of rows."""
        return self._rows.submitted[rows]

    def exact_keys(self, rows: Ints) -> list[int] | list[Fraction]:
        """The keys of rows as numbers that compare exactly with one another, and with nothing else."""
        use, aged = self._rows.use[rows].tolist(), self._aged[rows].tolist()
        numbers = self._rows.multiplier[rows].tolist()
        offsets = [0] * len(numbers) if self._rows.offset is None else self._rows.offset[rows].tolist()
        exact, rate = self._multipliers.exact, self._rules.rate
        common = self._common_denominator({*numbers, *offsets})
        if common is None:
            return [
                amount * exact[number] + exact[offset] + instant * rate
                for amount, number, offset, instant in zip(use, numbers, offsets, aged, strict=True)
            ]
        scaled = {number: int(exact[number] * common) for number in {*numbers, *offsets}}
        per_micro = int(rate * common)
        return [
            amount * scaled[number] + scaled[offset] + instant * per_micro
            for amount, number, offset, instant in zip(use, numbers, offsets, aged, strict=True)
        ]

    def _common_denominator(self, used: set[int]) -> int | None:
        """The common denominator of the rate and these numbers; None where it would be huge."""
        common = self._rules.rate.denominator
        for number in used:
            common = lcm(common, self._multipliers.exact[number].denominator)
            if common.bit_length() > _LONGEST_DENOMINATOR:
                return None
        return common

    def _rounded_keys(self) -> Floats:
        """The keys as floats, from the rows' earliest instant on: both terms are small then, and never negative."""
        if not len(self._aged):
            return self._rows.tag
        with np.errstate(over="ignore"):
            waiting = (self._aged - self._aged.min()) * nearest_float(self._rules.rate)
            keys: Floats = unaged(self._rows, self._multipliers) + waiting
        return keys

    def _roughly_sorted(self) -> Ints:
        order: Ints = np.argsort(self._keys)
        rank = self._rows.rank
        if len(rank) and rank.min() != rank.max():
            # Stable and of 16 bits: a radix sort, cheaper than a second sort of keys.
            order = order[np.argsort(rank[order].astype(np.int16), kind="stable")]  # ranks are few
        return order

    def _near(self, order: Ints) -> Flags:
        """Whether each row of the order and the next are too close for floats to tell."""
        keys, rank = self._keys[order], self._rows.rank[order]
        with np.errstate(invalid="ignore", over="ignore"):
            apart = keys[1:] - keys[:-1] > _NEAR * keys[1:] + _TINY
        near: Flags = ~apart & (rank[1:] == rank[:-1])
        return near


class _Doubt(NamedTuple):
    """Rows that floats cannot tell apart, in clusters."""

    slots: Ints
    """Positions of these rows in the order, ascending."""
    cluster: Ints
    rows: Ints

    def of(self, chosen: Flags) -> "_Doubt":
        """The doubt about the chosen rows alone."""
        return _Doubt(self.slots[chosen], self.cluster[chosen], self.rows[chosen])


class _Ties(NamedTuple):
    """Answers about uids where all else is equal; see `Ranking.order`."""

    of: Callable[[int], TieBreak]
    effective_ties: EffectiveTies | None


def _settle(order: Ints, near: Flags, ranking: Ranking, ties: _Ties) -> None:
    """Sorts each cluster of near rows exactly, in place."""
    clusters = np.cumsum(np.insert(~near, 0, True))
    slots = np.flatnonzero(np.append(near, False) | np.insert(near, 0, False))
    doubt = _Doubt(slots, clusters[slots], order[slots])
    pairs = np.flatnonzero(near)
    other_tag = pairs[~ranking.same_tag(order[pairs], order[pairs + 1])]
    mixed = np.isin(doubt.cluster, clusters[other_tag])
    _settle_equal_tags(order, doubt.of(~mixed), ranking, ties)
    _settle_mixed(order, doubt.of(mixed), ranking, ties)


def _settle_equal_tags(order: Ints, doubt: _Doubt, ranking: Ranking, ties: _Ties) -> None:
    """Sorts rows of equal tags: by the submit instant, by which keys ascend too, and then by the uid."""
    submitted = ranking.submitted(doubt.rows)
    effective_ties = None if ties.effective_ties is None else ties.effective_ties.take(doubt.rows)
    numbered = () if effective_ties is None else (effective_ties.position, effective_ties.effective)
    line = np.lexsort((*numbered, submitted, doubt.cluster))
    rows, submitted, cluster = doubt.rows[line], submitted[line], doubt.cluster[line]
    tied = (submitted[1:] == submitted[:-1]) & (cluster[1:] == cluster[:-1])
    untold = tied if effective_ties is None else tied & (np.diff(effective_ties.effective[line]) != 0)
    if untold.any():
        starts = np.flatnonzero(np.append(np.insert(~tied, 0, True), True))
        for group in np.unique(np.searchsorted(starts, np.flatnonzero(untold), side="right") - 1).tolist():
            one = slice(starts[group], starts[group + 1])
            rows[one] = sorted(rows[one].tolist(), key=ties.of)
    order[doubt.slots] = rows


def _settle_mixed(order: Ints, doubt: _Doubt, ranking: Ranking, ties: _Ties) -> None:
    numbers = doubt.rows.tolist()
    settled = sorted(
        zip(
            doubt.cluster.tolist(),
            ranking.exact_keys(doubt.rows),
            ranking.submitted(doubt.rows).tolist(),
            map(ties.of, numbers),
            numbers,
            strict=True,
        )
    )
    order[doubt.slots] = [number for *_, number in settled]
