"""Classes that were granted to single jobs, in the order of all."""

from datetime import UTC, datetime

import msgspec

from fairlead_cli.client.tables import queue_view
from fairlead_contracts.messages.questions import Approval
from fairlead_testkit.builders import a_queue_reply

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_a_wide_queue_says_who_granted_a_class_to_a_job_when_and_why() -> None:
    approved = Approval(job_class="urgent", by="ann", why="demo at noon", since=NOW)
    reply = a_queue_reply()
    [pool] = reply.pools
    first, *others = pool.places
    places = [msgspec.structs.replace(first, approved=approved), *others]
    queue = msgspec.structs.replace(reply, pools=[msgspec.structs.replace(pool, places=places)])
    job = f"{first.place.scope}/{first.place.id}"
    told = f"  · {job} is urgent, granted to it by ann since 2026-11-21 12:00 UTC (demo at noon)"
    assert queue_view(queue, approvals=True).splitlines()[-1] == told
    assert told not in queue_view(queue)
    assert "(by ann)" in queue_view(queue)
