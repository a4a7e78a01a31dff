"""Creations of one moment travel together, those of each scope by themselves."""

import asyncio

import pytest

from fairlead_admitter.errors import FrontendDownError
from fairlead_admitter.frontends.bus.frontend import LARGEST_TOGETHER, MOST_TOGETHER, Creations
from fairlead_contracts.frontend.verbs import CreateJob, CreateOutcome, CreateReply
from fairlead_testkit import eventually
from fairlead_testkit.inputs.builders import a_create


class CreatingCluster:
    """Replies with each job's id as its queue, once it may."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.fault: Exception | None = None

    async def create(self, jobs: list[CreateJob]) -> list[CreateReply]:
        self.asked.append([job.id for job in jobs])
        await self.go.wait()
        if self.fault is not None:
            raise self.fault
        return [CreateReply(outcome=CreateOutcome.CREATED, queue=job.id) for job in jobs]


async def test_each_hears_its_own_reply_and_one_request_is_made_for_each_scope() -> None:
    cluster = CreatingCluster()
    creations = Creations(cluster.create)
    jobs = [a_create(id=f"{scope}{number}", scope=scope) for number in range(5) for scope in "ab"]
    replies = await asyncio.gather(*(creations.create(job) for job in jobs))
    assert [reply.queue for reply in replies] == [job.id for job in jobs]
    assert cluster.asked == [[f"{scope}{number}" for number in range(5)] for scope in "ab"]


async def test_who_comes_later_waits_for_nobody() -> None:
    cluster = CreatingCluster()
    creations = Creations(cluster.create)
    cluster.go.clear()
    first = asyncio.ensure_future(creations.create(a_create(id="first")))
    await eventually(lambda: cluster.asked)
    second = asyncio.ensure_future(creations.create(a_create(id="second")))
    await eventually(lambda: len(cluster.asked) == 2)
    cluster.go.set()
    assert [reply.queue for reply in await asyncio.gather(first, second)] == ["first", "second"]


async def test_no_request_grows_without_bound() -> None:
    cluster = CreatingCluster()
    creations = Creations(cluster.create)
    large = a_create(id="large", labels={"l": "x" * LARGEST_TOGETHER})
    small = [a_create(id=f"s{number}") for number in range(2 * MOST_TOGETHER + 1)]
    await asyncio.gather(*(creations.create(job) for job in [small[0], large, *small[1:]]))
    assert sorted(map(len, cluster.asked)) == [1, 1, MOST_TOGETHER, MOST_TOGETHER]
    assert ["large"] in cluster.asked


async def test_what_goes_wrong_is_told_to_all_that_travelled_together() -> None:
    cluster = CreatingCluster()
    creations = Creations(cluster.create)
    cluster.fault = FrontendDownError("away")
    jobs = [a_create(id=str(number)) for number in range(3)]
    found = await asyncio.gather(*(creations.create(job) for job in jobs), return_exceptions=True)
    assert found == [cluster.fault] * 3


@pytest.mark.parametrize("asked", [True, False])
async def test_who_carries_the_others_and_is_dropped_leaves_nobody_waiting(*, asked: bool) -> None:
    cluster = CreatingCluster()
    creations = Creations(cluster.create)
    cluster.go.clear()
    first, second = (asyncio.ensure_future(creations.create(a_create(id=name))) for name in ("1", "2"))
    await asyncio.sleep(0)
    if asked:
        await eventually(lambda: cluster.asked)
    first.cancel()
    with pytest.raises(FrontendDownError):
        await second
    cluster.go.set()
    assert (await creations.create(a_create(id="3"))).queue == "3"
