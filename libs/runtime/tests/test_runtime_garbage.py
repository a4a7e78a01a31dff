"""Garbage in cycles that nobody found while it was young."""

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from fairlead_runtime.garbage import collect_fully
from fairlead_testkit import eventually
from fairlead_testkit.timing.in_hand import beside


class _Knot:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def by_itself() -> Iterator[None]:
    """Python looks for no garbage by itself, and nothing stays out of its sight afterwards."""
    gc.collect()
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


async def collecting(whole_every: int, until: Callable[[], bool], what: str) -> None:
    async with beside(collect_fully(every=0.01, whole_every=whole_every)):
        await eventually(until, what=what)


async def test_what_fell_apart_since_the_last_time_is_found() -> None:
    knot = _Knot()
    dead = weakref.ref(knot)
    gc.collect()  # old now
    del knot
    await collecting(1000, lambda: dead() is None, "the knot is found")


async def test_what_stands_is_looked_through_once_and_then_only_with_all() -> None:
    knot = _Knot()
    dead = weakref.ref(knot)
    await collecting(1000, lambda: gc.get_freeze_count() > 0, "it was looked at")
    assert not any(isinstance(one, _Knot) for one in gc.get_objects())
    del knot
    gc.collect()
    assert dead() is not None
    await collecting(2, lambda: dead() is None, "the knot is found with all")


async def test_what_stands_is_looked_through_again_once_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_runtime.garbage.GROWN", 1.0)
    knot: _Knot | None = _Knot()
    dead = weakref.ref(knot)
    kept: list[list[object]] = []

    def is_found() -> bool:
        nonlocal knot
        kept.append([kept])
        if not any(isinstance(one, _Knot) for one in gc.get_objects()):
            knot = None  # only now, as it was looked at while it lived
        return dead() is None

    gc.freeze()
    await collecting(1000, is_found, "the knot is found")
