"""Shares over time, from events that may come twice."""

import pytest

from fairlead_contracts.base.instants import SECOND, to_datetime
from fairlead_contracts.messages.events import AnyEvent, JobEnded, JobQueued, JobStarted
from fairlead_contracts.messages.state import Outcome
from fairlead_sim.meter import ShareMeter, jain, quantile

CAPACITY = {"cpu": 10_000, "memory": 100}


class MeterFeed:
    """Gives a meter the events of jobs, each twice: delivery is at least once."""

    def __init__(self, meter: ShareMeter) -> None:
        self.meter = meter

    def __call__(
        self, at: float, tenant: str, kind: str, uid: str, demand: dict[str, int] | None = None
    ) -> None:
        found = {
            "id": f"{uid}-{kind}",
            "at": to_datetime(round(at * SECOND)),
            "cluster": "c",
            "tenant": tenant,
            "scope": tenant,
            "job": uid,
            "uid": uid,
        }
        event: AnyEvent
        match kind:
            case "queued":
                event = JobQueued(**found, queue="q", demand=demand or {})  # type: ignore[arg-type] # as above
            case "started":
                event = JobStarted(**found, waited_seconds=0, level=0, demand={})  # type: ignore[arg-type] # as above
            case _:
                event = JobEnded(**found, outcome=Outcome.SUCCEEDED, ran_seconds=0)  # type: ignore[arg-type] # as above
        self.meter.observe(event)
        self.meter.observe(event)


def test_shares_are_averaged_over_the_time_in_which_all_are_backlogged() -> None:
    meter = ShareMeter(CAPACITY, ["a", "b"])
    feed = MeterFeed(meter)
    feed(0, "a", "queued", "a1", {"cpu": 5000, "memory": 1})
    feed(0, "a", "started", "a1")
    feed(1, "a", "queued", "a2", {"cpu": 1000})
    feed(2, "b", "queued", "b1", {"memory": 50})
    feed(2, "b", "queued", "b2", {"memory": 10})
    # From here all are backlogged: a holds 0.5 and b nothing for two seconds, then b holds 0.5 as well for two.
    feed(4, "b", "started", "b1")
    feed(6, "b", "started", "b2")
    feed(8, "a", "ended", "a1")
    assert meter.backlogged == 4 * SECOND
    assert meter.means() == pytest.approx({"a": 0.75, "b": 0.25})
    feed(9, "a", "queued", "a3")
    sample = meter.samples[-1]
    assert sample.shares == pytest.approx({"a": 0.0, "b": 0.6})
    assert (sample.waiting, sample.running) == ({"a": 1, "b": 0}, {"a": 0, "b": 2})


def test_a_job_that_is_taken_away_while_it_waits_waits_no_more() -> None:
    meter = ShareMeter(CAPACITY, ["a"])
    feed = MeterFeed(meter)
    feed(0, "a", "queued", "a1", {"cpu": 1})
    feed(1, "a", "ended", "a1")
    feed(2, "a", "queued", "a2")
    assert meter.samples[-1].waiting == {"a": 0}


def test_strangers_do_not_count() -> None:
    meter = ShareMeter(CAPACITY, ["a"])
    MeterFeed(meter)(0, "stranger", "queued", "s1", {"cpu": 1})
    assert meter.means() == {"a": 0.0}


def test_jain_and_quantiles() -> None:
    assert jain([1, 1, 1]) == 1
    assert jain([3, 0, 0]) == pytest.approx(1 / 3)
    assert jain([0, 0]) == 1
    assert [quantile([4, 1, 3, 2], part) for part in (0, 0.25, 0.5, 0.51, 0.9, 1)] == [1, 1, 2, 3, 4, 4]
    assert quantile([], 0.5) == 0
