"""The record of reserve mode: metrics, log lines, and an event for each promise and each pass."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec
import structlog

from fairlead_contracts.base.instants import SECOND, Micros, to_datetime
from fairlead_contracts.messages.events import Reserving
from fairlead_contracts.messages.members import ReservedStarts
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.reserve.reservation import Breach, BreakCause, NoReservation, Pass, Promise, Reservation
from fairlead_runtime.metrics import Metrics

_PASSES_STATED = 64
"""Passes that a lease tells at most: it is written each second."""
_RUNS_STATED = 8
_MOST_NEWS = 1_000
"""News kept until somebody takes them; older ones are dropped and counted as lost."""

type JobOf = Callable[[str], JobState | None]


class ReservationNews(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence of reserve mode that concerns a job."""

    job: JobState
    what: Reserving
    pool: str
    mark: str
    """Mark that tells this occurrence from one of its kind at another time."""
    by: Micros | None = None
    head: str | None = None
    because: str


class _ToldReservation(msgspec.Struct):
    """The last word on a pool's reservation."""

    promise: Promise | None = None
    passes: dict[str, Pass] = {}
    why_none: NoReservation | None = None
    in_its_way: tuple[str, ...] = ()
    head: str | None = None

    def stated(self, pool: str) -> ReservedStarts:
        """The reservation as the lease carries it."""
        return ReservedStarts(
            pool=pool,
            head=self.head,
            shadow=None if self.promise is None else self.promise.shadow,
            why_none="" if self.why_none is None else WHY_NONE[self.why_none],
            in_its_way=list(self.in_its_way[:_RUNS_STATED]),
            passing=list(islice(self.passes, _PASSES_STATED)),
        )


class ReservationRecord:
    """Metrics, log and news of reserve mode. Labels are pools, outcomes and causes; never a job."""

    def __init__(self, metrics: Metrics, cluster: str) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(cluster=cluster)
        self._held_back = metrics.gauge(
            "reserve_held_back",
            "1 while the policy wants starts promised in the pool and they cannot be: it is steered as `advise`.",
            labels=["pool"],
        )
        self._shadow = metrics.gauge(
            "promised_start_seconds",
            "Unix time by which the head of the pool starts at the latest; 0 without a promise.",
            labels=["pool"],
        )
        self._promises = metrics.counter(
            "promises", "Promises of reserve mode, by outcome.", labels=["pool", "outcome"]
        )
        self._broken = metrics.counter(
            "promises_broken", "Promises that were not kept, by cause.", labels=["pool", "cause"]
        )
        self._passes = metrics.counter(
            "passes", "Passes of reserve mode, by outcome.", labels=["pool", "outcome"]
        )
        self._lost = metrics.counter("reserve_news_lost", "News of reserve mode that nobody took.")
        self._why: dict[str, str] = {}
        self._open: dict[str, _ToldReservation] = {}
        self._paused: dict[str, _ToldReservation] = {}
        self._news: deque[ReservationNews] = deque()

    def pause(self) -> None:
        """Stands by: what is open may be another's to tell."""
        for pool in self._open:
            self._shadow.labels(pool).set(0)
        self._paused, self._open = self._open, {}
        for pool in self._why:
            self._held_back.labels(pool).set(0)
        self._why.clear()

    def go_on(self) -> None:
        """Goes on after a pause in which nobody else has led."""
        self._open, self._paused = self._paused, {}

    def begin_anew(self) -> None:
        """Forgets what is open, of which another replica may have told. What nobody took of the news is lost, and counted."""
        self.pause()
        self._paused.clear()
        self._lost.inc(len(self._news))
        self._news.clear()

    def pools(self) -> set[str]:
        """The pools of which something is told."""
        return self._why.keys() | self._open.keys()

    def not_wanted(self, pool: str) -> None:
        """Notes that the policy promises no starts in the pool."""
        self._note_held_back(pool, "")
        self._close(pool)

    def held_back(self, pool: str, why: str) -> None:
        """Notes the reason for which starts cannot be promised although the policy wants them; empty where they can."""
        self._note_held_back(pool, why)
        if why:
            self._close(pool)

    def told(self) -> str | None:
        """The promises for people: what is promised where, and where nothing can be and why; None without reserve mode."""
        lines = [f"{pool}: steered as advise: {why}" for pool, why in sorted(self._why.items())]
        for pool, known in sorted(self._open.items()):
            promise = known.promise
            if promise is not None:
                lines.append(
                    f"{pool}: {promise.uid} starts by {_clock(promise.shadow)}, {len(known.passes)} passes"
                )
            elif known.why_none is not None:
                lines.append(f"{pool}: no promise: {WHY_NONE[known.why_none]}")
        return "; ".join(lines) or None

    def stated(self) -> list[ReservedStarts]:
        """The reservations for whoever explains jobs, as the lease carries them."""
        held_back = [ReservedStarts(pool=pool, why_not=why) for pool, why in sorted(self._why.items())]
        return held_back + [known.stated(pool) for pool, known in sorted(self._open.items())]

    def decided(self, pool: str, found: Reservation, job_of: JobOf) -> None:
        """Notes what was decided anew, and what became of what was decided before."""
        known = self._open.setdefault(pool, _ToldReservation())
        news = [
            *self._news_of_passes(pool, known, found, job_of),
            *self._news_of_promise(pool, known, found, job_of),
        ]
        known.promise, known.why_none = found.promise, found.why_none
        known.in_its_way = _runs_in_the_way(found)
        known.head = None if found.head is None else found.head.uid
        known.passes = {uid: one for uid, one in found.standing.passes.items() if one.withdrawn is None}
        self._shadow.labels(pool).set(0 if found.promise is None else found.promise.shadow / SECOND)
        for one in news:
            self._tell(one)

    def take_news(self) -> list[ReservationNews]:
        """Takes the news since it was last asked."""
        taken = list(self._news)
        self._news.clear()
        return taken

    # --- what became of what

    def _news_of_passes(
        self, pool: str, known: _ToldReservation, found: Reservation, job_of: JobOf
    ) -> Iterator[ReservationNews]:
        withdrawn = {one.uid: one for one in found.withdrawn}
        for uid, one in known.passes.items():
            job = job_of(uid)
            if job is not None and uid in withdrawn:
                why = WITHDRAWALS[str(withdrawn[uid].withdrawn)]
                yield _pass_news(one, job, Reserving.WITHDRAWN, pool=pool, head=known.promise, because=why)
            elif job is None or (job.phase is not Phase.WAITING and job.started is None):
                self._passes.labels(pool, "left").inc()
            elif job.phase is not Phase.WAITING:
                yield _pass_news(
                    one,
                    job,
                    Reserving.TAKEN,
                    pool=pool,
                    head=known.promise,
                    because="the frontend started it",
                )
        for one in found.given:
            job = job_of(one.uid)
            if job is not None:
                because = (
                    "the head fits beside it" if one.beside else "it ends before the head's promised start"
                )
                yield _pass_news(one, job, Reserving.PASSED, pool=pool, head=found.promise, because=because)

    def _news_of_promise(
        self, pool: str, known: _ToldReservation, found: Reservation, job_of: JobOf
    ) -> Iterator[ReservationNews]:
        before, after = known.promise, found.promise
        if before is not None and (after is None or (after.uid, after.made) != (before.uid, before.made)):
            job = job_of(before.uid)
            if job is not None:
                yield self._ended(pool, before, job, found.breach)
            else:
                self._promises.labels(pool, Reserving.LET_GO).inc()
        if after is not None and (before is None or (after.uid, after.made) != (before.uid, before.made)):
            job = job_of(after.uid)
            if job is not None:
                because = "by then enough has ended of what runs, by its limits and the grace"
                yield _promise_news(pool, after, job, Reserving.PROMISED, because)

    def _ended(self, pool: str, promise: Promise, job: JobState, breach: Breach | None) -> ReservationNews:
        if breach is not None:
            self._broken.labels(pool, breach.cause.value).inc()
            return _promise_news(pool, promise, job, Reserving.BROKEN, CAUSES[breach.cause])
        if job.phase is Phase.WAITING or job.started is None:
            return _promise_news(
                pool, promise, job, Reserving.LET_GO, "it waits no more, or in another class"
            )
        if job.started > promise.shadow:
            self._broken.labels(pool, "late").inc()
            return _promise_news(pool, promise, job, Reserving.BROKEN, "it started later")
        return _promise_news(pool, promise, job, Reserving.KEPT, "it started in time")

    def _tell(self, news: ReservationNews) -> None:
        counter = self._promises if news.head is None else self._passes
        counter.labels(news.pool, news.what.value).inc()
        say = self._log.warning if news.what is Reserving.BROKEN else self._log.info
        by = None if news.by is None else _clock(news.by)
        say(f"reserve: {news.what}", pool=news.pool, job=news.job.id, by=by, because=news.because)
        if len(self._news) >= _MOST_NEWS:
            self._lost.inc()
            self._news.popleft()
        self._news.append(news)

    def _note_held_back(self, pool: str, why: str) -> None:
        if self._why.get(pool, "") == why:
            return
        self._held_back.labels(pool).set(bool(why))
        if why:
            self._why[pool] = why
            self._log.warning("no start can be promised: the pool is steered as advise", pool=pool, why=why)
        else:
            del self._why[pool]

    def _close(self, pool: str) -> None:
        known = self._open.pop(pool, None)
        if known is not None:
            self._shadow.labels(pool).set(0)
            if known.promise is not None:
                self._promises.labels(pool, Reserving.LET_GO).inc()
                self._log.warning("promise let go: starts are not promised here any more", pool=pool)


CAUSES = {
    BreakCause.HIGHER_CLASS: "a job of a higher class came that does not fit either",
    BreakCause.OVERDUE: "something runs beyond its limit and grace",
    BreakCause.CAPACITY: "the pool has less than when it was promised",
    BreakCause.NOT_STARTED: "it fits by quota, and the frontend does not start it",
    BreakCause.OVERTAKEN: "others were started before it: of a higher class, or lifted by somebody else",
}
WHY_NONE = {
    NoReservation.NO_HEAD: "all that waits fits",
    NoReservation.STARTING: "the head, or jobs before it, are about to start",
    NoReservation.NOT_IN_PLACE: "the head has not been seen in front for long enough yet",
    NoReservation.ENDLESS: "runs without a limit are in the head's way",
    NoReservation.OVERDUE: "runs beyond their limit are in the head's way",
}
WITHDRAWALS = {
    "unused": "the frontend did not start it although it seemed to fit",
    "head-gone": "the head that it went before has started, or waits no more",
    "held": "it may not start just now: it is held",
    "changed": "it asks for more than it was given the pass for, or runs for longer",
    "promise-lost": "the head that it went before has no promise any more",
}


def _runs_in_the_way(found: Reservation) -> tuple[str, ...]:
    """The runs of which nobody knows the end, where nothing can be promised for that."""
    if found.shadow is None or found.why_none not in (NoReservation.ENDLESS, NoReservation.OVERDUE):
        return ()
    return (*found.shadow.endless, *found.shadow.overdue)


def _pass_news(
    one: Pass, job: JobState, what: Reserving, *, pool: str, head: Promise | None, because: str
) -> ReservationNews:
    uid = "" if head is None else head.uid
    return ReservationNews(
        job=job, what=what, pool=pool, mark=str(one.given), by=one.ends, head=uid, because=because
    )


def _promise_news(
    pool: str, promise: Promise, job: JobState, what: Reserving, because: str
) -> ReservationNews:
    return ReservationNews(
        job=job, what=what, pool=pool, mark=str(promise.made), by=promise.shadow, because=because
    )


def _clock(at: Micros) -> str:
    return to_datetime(at).isoformat(timespec="seconds")
