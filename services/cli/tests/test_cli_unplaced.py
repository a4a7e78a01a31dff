"""Jobs that have not started and have no place, as `fairlead queue` shows them."""

import msgspec

from fairlead_cli.client.tables import queue_view
from fairlead_contracts.messages.questions import UnplacedJob
from fairlead_testkit.builders import a_queue_reply


def test_jobs_that_have_no_place_are_told_with_the_reason_though_nobody_waits() -> None:
    [pool] = a_queue_reply().pools
    told = UnplacedJob(
        job="team-a/gang", tenant="team-a", why="has its quota; admission check gang-fit is Pending"
    )
    idle = msgspec.structs.replace(
        pool, waiting=0, places=[], silent_shards=[], steering=[], unplaced=3, unplaced_first=[told]
    )
    assert queue_view(msgspec.structs.replace(a_queue_reply(), pools=[idle])).splitlines() == [
        "Nobody waits in line.",
        f"pool {pool.pool}",
        "3 jobs have not started and no place in this order:",
        "  · team-a/gang: has its quota; admission check gang-fit is Pending",
        "  … and 2 more (`fairlead explain JOB` says why)",
    ]
    beside = msgspec.structs.replace(pool, unplaced=1, unplaced_first=[told])
    assert "1 job has not started and no place" in queue_view(
        msgspec.structs.replace(a_queue_reply(), pools=[beside])
    )


def test_tasks_behind_the_window_of_an_array_are_not_told_twice() -> None:
    [pool] = a_queue_reply().pools
    array = UnplacedJob(job="team-a/7", tenant="team-a", why="197 tasks of this array", tasks=197)
    held = UnplacedJob(job="team-a/8", tenant="team-a", why="its user holds it")
    behind = msgspec.structs.replace(pool, unplaced=198, unplaced_first=[array, held])
    shown = queue_view(msgspec.structs.replace(a_queue_reply(), pools=[behind]))
    assert "198 jobs have not started" in shown
    assert "team-a/7: 197 tasks" in shown
    assert "more (`fairlead explain" not in shown
