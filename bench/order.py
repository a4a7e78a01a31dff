"""Cost of an order on this machine, from arrays in memory to positions; beside it, the same by a plain heap.

    python bench/order.py --jobs 1000000 --tenants 10000 --resources 5 [--json]

Also one event among up to 100,000 jobs, and the levels of a window. Uses one processor. Pools are made up, and the same
each time. With `--json` a line of JSON each; the last is the order, its `seconds` the best of three turns.
"""

import argparse
import gc

import msgspec
from order_measuring import measure_events, measure_levels, measure_order, quantile
from order_pools import Size, made_pool

EVENT_JOBS = 100_000
WINDOW = 10_000


class OrderLine(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of an order."""

    jobs: int
    tenants: int
    resources: int
    seconds: float
    peak_megabytes: float
    heap_seconds: float
    """The same work by a plain heap in Python."""
    ratio: float
    """Times as fast as the heap."""
    agrees: bool
    differ: int
    """Number of ranks that are another job's by the heap: none."""


class EventLine(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of an event among waiting jobs, with the heads and standings that follow from it."""

    event_jobs: int
    p50_seconds: float
    p99_seconds: float


class LevelsLine(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a window's levels."""

    window: int
    levels_seconds: float


def bench_order(size: Size, *, json: bool) -> None:
    """Measure and print; the line of the order itself is the last."""
    # What is measured are the arithmetic and the sort, not when Python looks for garbage.
    gc.disable()
    pool = made_pool(size)
    figures = measure_order(pool)
    event = _event(size)
    levels = LevelsLine(window=WINDOW, levels_seconds=measure_levels(WINDOW))
    order = OrderLine(
        jobs=size.jobs,
        tenants=size.tenants,
        resources=size.resources,
        seconds=figures.seconds,
        peak_megabytes=figures.peak_megabytes,
        heap_seconds=figures.heap_seconds,
        ratio=figures.heap_seconds / figures.seconds,
        agrees=not figures.differ,
        differ=figures.differ,
    )
    for line in (event, levels, order):
        print(msgspec.json.encode(line).decode() if json else _in_words(line), flush=True)


def _event(size: Size) -> EventLine:
    jobs = min(size.jobs, EVENT_JOBS)
    pool = made_pool(Size(jobs=jobs, tenants=size.tenants, resources=size.resources))
    taken = measure_events(pool)
    return EventLine(event_jobs=jobs, p50_seconds=quantile(taken, 0.5), p99_seconds=quantile(taken, 0.99))


def _in_words(line: OrderLine | EventLine | LevelsLine) -> str:
    match line:
        case EventLine():
            return (
                f"one event among {line.event_jobs} jobs, with the heads and standings that follow: "
                f"{line.p50_seconds * 1e3:.2f} ms, 99 of 100 within {line.p99_seconds * 1e3:.2f} ms"
            )
        case LevelsLine():
            return f"levels of a window of {line.window} jobs: {line.levels_seconds * 1e3:.1f} ms"
        case OrderLine():
            same = "the same order" if line.agrees else f"another job in {line.differ} places"
            return (
                f"order of {line.jobs} jobs of {line.tenants} tenants by {line.resources} resources: "
                f"{line.seconds * 1e3:.1f} ms, {line.peak_megabytes:.0f} MB; by a plain heap "
                f"{line.heap_seconds:.2f} s, {line.ratio:.0f} times as long, {same}"
            )


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description="Put a pool that is made up in order, and measure it.")
    for name, default in (("jobs", 100_000), ("tenants", 200), ("resources", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true", help="a line of JSON each")
    asked = parser.parse_args()
    for name in ("jobs", "tenants", "resources"):
        if (value := getattr(asked, name)) < 1:
            parser.error(f"--{name} must be at least 1 (found {value})")
    bench_order(Size(jobs=asked.jobs, tenants=asked.tenants, resources=asked.resources), json=asked.json)


if __name__ == "__main__":
    main()
