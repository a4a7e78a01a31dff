"""A service with every way to live and to end, run as a process by the tests of the service's life."""

import asyncio
import gc
from typing import Literal

import structlog
from opentelemetry import trace

from fairlead_runtime.lifecycle import Lifecycle
from fairlead_runtime.service import run_service
from fairlead_runtime.settings import Secret, ServiceSettings

LOG = structlog.get_logger()


class DemoSettings(ServiceSettings, frozen=True, kw_only=True):
    """Settings of the demonstration."""

    mode: Literal["serve", "fail", "end", "refuse", "climb", "stubborn", "untidy", "grow"] = "serve"
    """Course of the demonstration."""
    licence: Secret | None = None
    """A secret that no name gives away."""


async def tick(name: str) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        LOG.info("task over", task=name)


async def end_badly() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise OSError("the clean-up failed")


async def fail() -> None:
    with trace.get_tracer("demo").start_as_current_span("failing"):
        LOG.info("inside the span")
    raise ValueError("the demonstration failed")


async def end() -> None:
    return


async def grow() -> None:
    """Hold as many objects as some ten thousand waiting jobs are, and say how often all of them were looked through."""
    before = gc.get_stats()[2]["collections"]
    held = [[number] for number in range(500_000)]
    LOG.info("grown", held=len(held), full_collections=gc.get_stats()[2]["collections"] - before)
    await asyncio.Event().wait()


async def ignore_cancellation() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            LOG.info("not yet")


async def main(settings: DemoSettings, lifecycle: Lifecycle) -> None:
    if settings.mode == "climb":
        LOG.info("climbing")
        await asyncio.Event().wait()
    ready = lifecycle.metrics.gauge("ready_since", "When it became ready.", unit="timestamp_seconds")
    async with lifecycle.supervise() as tasks:
        tasks.start("first", tick("first"))
        tasks.start("second", tick("second"))
        if settings.mode == "fail":
            tasks.start("failing", fail())
        if settings.mode == "end":
            tasks.start("ending", end())
        if settings.mode == "stubborn":
            tasks.start("stubborn", ignore_cancellation())
        if settings.mode == "untidy":
            tasks.start("untidy", end_badly())
        if settings.mode == "grow":
            tasks.start("grow", grow())
        if settings.mode == "refuse":
            lifecycle.readiness.add("state", lambda: "the replay is not complete")
        lifecycle.readiness.add("demo", lambda: None)
        ready.set_to_current_time()
        with trace.get_tracer("demo").start_as_current_span("serving"):
            LOG.info("serving")


if __name__ == "__main__":
    run_service(DemoSettings, main, service="demo", description="A demonstration.")
