"""Jobs of top-level tenants side by side, as equal columns: thousands of tenants are then a few arrays, with no object a job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from typing import NamedTuple, Protocol

import numpy as np

from fairlead_policy.exact.ranking import Ints, Rows, TieBreak, join
from fairlead_policy.exact.scoring import JobColumns, Scores, ShareMeasure, join_scores
from fairlead_policy.rules.jobs import PositionedJob
from fairlead_policy.tenants.service_order import InfiniteCause, ServiceOrder
from fairlead_policy.tenants.tenant_queue import TenantQueue, scored_side_by_side


class TopLevelTenant(Protocol):
    """Jobs by their indexes in a top-level tenant's sequence."""

    @property
    def top(self) -> str:
        """The tenant's name."""

    def job_at(self, index: int) -> PositionedJob:
        """The job at an index."""

    def jobs_at(self, indexes: Ints) -> Sequence[PositionedJob]:
        """The jobs at these indexes."""

    def tie_at(self, index: int) -> TieBreak:
        """The tie that settles equal keys and submit instants."""

    def cause_at(self, index: int, /) -> InfiniteCause:
        """The resource that the pool has none of and that makes the share of a job infinite."""


class Columns(NamedTuple):
    """Equal columns, a row a job."""

    at: Ints
    """Position of each job in the sequence of its top-level tenant."""
    scores: Scores
    """Scores of the jobs by their own terms."""
    rows: Rows
    """Rows by the terms that each job counts by: those of `scores` where they are its own."""
    queue: Ints
    """Number of each job's queue."""

    def slice(self, start: int, end: int) -> "Columns":
        """The rows from `start` up to `end`."""
        if end - start == len(self.at):
            return self
        some = slice(start, end)
        scores = self.scores.take(some)
        rows = scores.rows if self.rows is self.scores.rows else self.rows.take(some)
        return Columns(self.at[some], scores, rows, self.queue[some])

    @classmethod
    def joined(cls, parts: "Sequence[Columns]") -> "Columns":
        """The rows of all parts, one after the other."""
        parts = [part for part in parts if len(part.at)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return _no_columns()
        return cls._joined(parts)

    @classmethod
    def _joined(cls, parts: "Sequence[Columns]") -> "Columns":
        scores = join_scores([part.scores for part in parts])
        plain = all(part.rows is part.scores.rows for part in parts)
        rows = scores.rows if plain else join([part.rows for part in parts])
        none = np.empty(0, np.int64)
        at, queue = ([none, *column] for column in ((p.at for p in parts), (p.queue for p in parts)))
        return cls(np.concatenate(at), scores, rows, np.concatenate(queue))


@cache
def _no_columns() -> Columns:
    return Columns._joined([])  # noqa: SLF001 # this module's own


@dataclass(frozen=True, slots=True, eq=False)
class SequenceColumns:
    """Jobs of top-level tenants: all, or those that queues' heads are taken from."""

    tenants: Sequence[TopLevelTenant]
    counts: Sequence[int]
    """Number of jobs that are here, tenant by tenant."""
    served: Mapping[int, ServiceOrder]
    """Sequences of the tenants that do not stand alone, by number of the tenant."""
    columns: Columns

    @classmethod
    def of_nobody(cls, tenant: TopLevelTenant) -> "SequenceColumns":
        """The columns of a tenant without a job."""
        return cls([tenant], [0], {}, Columns.joined([]))

    @classmethod
    def of(cls, sequence: ServiceOrder, at: Ints) -> "SequenceColumns":
        """Jobs of a tenant that does not stand alone, at some indexes, ascending."""
        columns = Columns(at, sequence.scores.take(at), sequence.rows.take(at), sequence.queues[at])
        return cls([sequence], [len(at)], {0: sequence}, columns)

    @classmethod
    def of_own_order(cls, tenant: TopLevelTenant, queue: TenantQueue, at: Ints) -> "SequenceColumns":
        """Jobs of a tenant that stands alone: its sequence is its own order, and each job counts as itself."""
        depth = int(at[-1]) + 1
        scores, numbers = queue.scored(depth).first(depth), queue.columns(depth).queue
        if len(at) < depth:
            scores, numbers = scores.take(at), numbers[at]
        return cls([tenant], [len(at)], {}, Columns(at, scores, scores.rows, numbers))

    @classmethod
    def of_own_orders(
        cls, tenants: Sequence[TopLevelTenant], queues: Sequence[TenantQueue], measure: ShareMeasure
    ) -> "SequenceColumns":
        """All jobs of tenants that stand alone, each of which has some."""
        lines, scores = scored_side_by_side(queues, measure)
        counts = np.diff(lines.starts)
        at = np.arange(len(lines)) - np.repeat(lines.starts[:-1], counts)
        queue = JobColumns.of(lines.numbers).queue
        return cls(tenants, counts.tolist(), {}, Columns(at, scores, scores.rows, queue))

    @classmethod
    def joined(cls, parts: "Sequence[SequenceColumns]") -> "SequenceColumns":
        """The jobs of all parts, one after the other."""
        firsts = accumulate((len(part.tenants) for part in parts), initial=0)
        return cls(
            list(chain.from_iterable(part.tenants for part in parts)),
            list(chain.from_iterable(part.counts for part in parts)),
            {
                first + number: sequence
                for first, part in zip(firsts, parts, strict=False)
                for number, sequence in part.served.items()
            },
            Columns.joined([part.columns for part in parts]),
        )

    def with_parts(self, parts: "Mapping[int, SequenceColumns]") -> "SequenceColumns":
        """The columns with other jobs of some tenants, by the tenant's number: all that lies between them is copied as it lies."""
        if not parts:
            return self
        tenants, counts, served = [*self.tenants], [*self.counts], {**self.served}
        bounds, end, pieces = self.bounds(), 0, []
        for number, part in sorted(parts.items()):
            pieces += [self.columns.slice(end, bounds[number]), part.columns]
            end = bounds[number + 1]
            [tenants[number]], [counts[number]] = part.tenants, part.counts
            served.pop(number, None)
            served.update((number, sequence) for sequence in part.served.values())
        pieces.append(self.columns.slice(end, bounds[-1]))
        return SequenceColumns(tenants, counts, served, Columns.joined(pieces))

    def bounds(self) -> list[int]:
        """The rows at which each tenant's jobs begin, and at which the last one's end."""
        return [0, *accumulate(self.counts)]
