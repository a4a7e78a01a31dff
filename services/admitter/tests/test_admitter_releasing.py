"""Sweeping released pools beside the loop: what is steered again meanwhile is let go."""

import asyncio
import time
from collections.abc import Callable, Collection

from fairlead_admitter.apply.frontend_backoff import FrontendBackoff
from fairlead_admitter.apply.release import PoolRelease
from fairlead_admitter.report.job_traces import JobTraces
from fairlead_admitter.report.record import AdmitterRecord
from fairlead_contracts.messages.leave import LeverName
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_testkit import eventually


class SlowSweep:
    """A frontend whose sweeps last until the test lets them end."""

    def __init__(self) -> None:
        self.begun: list[list[str]] = []
        self.gate = asyncio.Event()

    async def sweep(
        self, queues: Collection[str], go_on: Callable[[], bool], only: LeverName | None = None
    ) -> int:
        assert only is None
        self.begun.append(list(queues))
        await self.gate.wait()
        return int(go_on())


async def test_a_pool_that_is_steered_again_while_another_is_swept_is_let_go() -> None:
    sweep = SlowSweep()
    lifecycle = Lifecycle("admitter", "one")
    record = AdmitterRecord(lifecycle.metrics, "c1", JobTraces(lifecycle.spans, "c1"))
    release = PoolRelease(sweep, record, FrontendBackoff(time.monotonic, 30.0))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(release.run())
        release.wanted("a", ["qa"], lambda: True)
        release.wanted("b", ["qb"], lambda: True)
        await eventually(lambda: sweep.begun == [["qa"]])
        release.over("b")
        sweep.gate.set()
        release.wanted("c", ["qc"], lambda: True)
        await eventually(lambda: sweep.begun == [["qa"], ["qc"]])
        assert not running.done()
        running.cancel()
