"""Metrics: names with units, one registry, exemplars where asked for; the observer counts and logs."""

import pytest

from fairlead_runtime.health import Readiness
from fairlead_runtime.metrics import Metrics, MetricsObserver

OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def exposed(metrics: Metrics, accept: str = "") -> str:
    return metrics.expose(accept)[0].decode()


def test_names_are_namespace_subsystem_name_unit() -> None:
    metrics = Metrics("scorer")
    metrics.counter("decisions", "Decisions.", labels=["pool"]).labels("c1/gpu").inc()
    metrics.counter("read", "Read.", unit="bytes").inc(5)
    metrics.gauge("waiting", "Waiting.", unit="jobs").set(3)
    metrics.histogram("score", "Scoring.").observe(0.002)
    text = exposed(metrics)
    for sample in (
        'fairlead_scorer_decisions_total{pool="c1/gpu"} 1.0',
        "fairlead_scorer_read_bytes_total 5.0",
        "fairlead_scorer_waiting_jobs 3.0",
        'fairlead_scorer_score_seconds_bucket{le="0.0025"} 1.0',
    ):
        assert sample in text


@pytest.mark.parametrize(
    "accept", ["", OPEN_METRICS, "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,*/*;q=0.1"]
)
def test_a_hyphenated_service_has_the_same_names_on_every_release_of_prometheus(accept: str) -> None:
    """Prometheus asks for names of any characters from 3.0 on, and would get `slurm-bridge` as it stands."""
    metrics = Metrics("slurm-bridge")
    metrics.counter("hooks", "Hooks.").inc()
    assert "fairlead_slurm_bridge_hooks_total 1.0" in exposed(metrics, accept)


def test_the_same_name_twice_is_an_error() -> None:
    metrics = Metrics("scorer")
    metrics.counter("decisions", "Decisions.")
    with pytest.raises(ValueError, match="Duplicated"):
        metrics.counter("decisions", "Decisions.")


def test_subsystems_share_a_registry_and_processes_do_not() -> None:
    metrics = Metrics("scorer")
    metrics.of("bus").counter("rebuilds", "Rebuilds.").inc()
    assert "fairlead_bus_rebuilds_total 1.0" in exposed(metrics)
    assert "fairlead_bus" not in exposed(Metrics("scorer"))


def test_the_observer_counts_what_it_is_told() -> None:
    metrics = Metrics("scorer")
    observer = MetricsObserver(metrics)
    observer.count("published", 3)
    observer.count("published")
    observer.note("reconnected", server="s1", event="a fact of an unlucky name")
    text = exposed(metrics)
    assert 'fairlead_bus_events_total{what="published"} 4.0' in text
    assert 'fairlead_bus_events_total{what="reconnected"} 1.0' in text


def test_exemplars_are_shown_in_open_metrics_alone() -> None:
    metrics = Metrics("admitter")
    latency = metrics.histogram("level_latency", "Event to level.")
    latency.observe(0.01, {"trace_id": "abc"})
    assert "abc" in exposed(metrics, OPEN_METRICS)
    assert "abc" not in exposed(metrics)


def test_a_service_that_names_no_check_is_not_ready() -> None:
    readiness = Readiness()
    assert readiness.reasons() == {"start": "the service is starting"}
    readiness.add("state", lambda: None)
    assert readiness.reasons() == {}


def test_a_check_that_breaks_means_not_ready() -> None:
    readiness = Readiness()
    readiness.add("fine", lambda: None)
    readiness.add("broken", lambda: str(1 // 0))
    assert "ZeroDivisionError" in readiness.reasons()["broken"]
