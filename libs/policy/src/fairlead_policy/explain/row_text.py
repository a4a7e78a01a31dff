"""Causes that put each job of a whole order behind the one right before it, in words: a million in seconds.

Of tenants side by side with strict classes, by the terms of both keys. Where tenants stand in a tree, classes are terms or
H-DRF scales shares, two rows of figures do not tell it: `explanation.neighbour_of` does, a job at a time.
"""

from collections.abc import Iterator
from typing import NamedTuple

from fairlead_contracts.base.figures import percent
from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import FLOAT_DOUBT
from fairlead_policy.explain.neighbour_text import CLOSE, EQUAL_BUT_UID, EQUAL_KEYS, OWN_ORDER, both_in_words
from fairlead_policy.order.position_columns import PositionColumns
from fairlead_policy.rules.pool_rules import PoolRules

FIRST = "first"


class _Row(NamedTuple):
    """The terms that a job is compared by."""

    rank: int
    """Position of its class."""
    job_class: str
    tenant: str
    tag: float
    counted: Micros
    """The submit time that counts."""
    submitted: Micros
    unbounded: bool


class RowCauses:
    """Says why one pool's jobs stand behind one another, part by part.

    Args:
        rules: the rules that the positions were made by.
        now: the instant of the order.
    """

    def __init__(self, rules: PoolRules, now: Micros) -> None:
        self.tells = rules.strict and rules.relative and not rules.rescaled and not rules.parents
        """Whether figures tell the causes in this pool at all."""
        self._ranks = {job_class: rules.rank_of(job_class) for job_class in rules.classes}
        self._rate = float(rules.rate)
        self._horizon = None if rules.cap is None or not rules.rate else now - rules.cap
        self._before: _Row | None = None
        self._any = False

    def of(self, part: PositionColumns) -> list[str]:
        """The sentences on the jobs that come next; empty where figures do not tell it, or the order is another than theirs."""
        return list(self._causes(part))

    def _causes(self, part: PositionColumns) -> Iterator[str]:
        if not self.tells:
            for _ in part.jobs:
                yield "" if self._any else FIRST
                self._any = True
            return
        for row in self._rows(part):
            before, self._before = self._before, row
            yield FIRST if before is None else self._why(before, row)

    def _rows(self, part: PositionColumns) -> Iterator[_Row]:
        ranks, horizon = self._ranks, self._horizon
        columns = part.jobs, part.tag, part.submitted, part.unbounded_by
        for job, tag, submitted, because in zip(*columns, strict=True):
            counted = submitted if horizon is None or submitted > horizon else horizon
            unbounded = because is not None
            yield _Row(ranks[job.job_class], job.job_class, job.tenant, tag, counted, submitted, unbounded)

    def _why(self, before: _Row, row: _Row) -> str:
        if before.rank != row.rank:
            return f"class {before.job_class} goes before {row.job_class}" if before.rank < row.rank else ""
        if before.tenant == row.tenant:
            return OWN_ORDER if before.submitted <= row.submitted else ""
        if before.unbounded or row.unbounded:
            return ""
        return self._by_terms(before, row)

    def _by_terms(self, before: _Row, row: _Row) -> str:
        share, waiting = row.tag - before.tag, (row.counted - before.counted) * self._rate
        lead = share + waiting
        if lead < (FLOAT_DOUBT * (before.tag + row.tag + abs(waiting)) if share and waiting else 0):
            return ""  # reserve mode let it pass, or floats do not tell
        if not lead:
            return EQUAL_KEYS if before.submitted < row.submitted else EQUAL_BUT_UID
        if waiting > share:
            return "it has waited longer"
        if share < CLOSE:
            return f"its tenant has {percent(share)} less of its part"
        return both_in_words(before.tag, row.tag)
