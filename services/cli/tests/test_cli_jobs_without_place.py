"""Jobs that stand in no order, in the words of `queue`."""

from datetime import UTC, datetime

from fairlead_cli.client.tables import queue_view
from fairlead_contracts.messages.questions import PoolQueue, QueueReply, UnplacedJob

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
IDLE = PoolQueue(pool="gpu", waiting=0, places=[])


def test_jobs_whose_queue_leads_nowhere_are_told_whether_or_not_others_wait() -> None:
    first = [UnplacedJob(job="team-a/stray", tenant="team-a", why="no LocalQueue 'typo' in namespace team-a")]
    for pools in ([], [IDLE], [PoolQueue(pool="gpu", waiting=1, places=[])]):
        text = queue_view(QueueReply(at=NOW, pools=pools, nowhere=3, nowhere_first=first))
        assert text.endswith(
            "3 jobs are in no order, as no pool is behind the queue:\n"
            "  · team-a/stray: no LocalQueue 'typo' in namespace team-a\n"
            "  … and 2 more (`fairlead explain JOB` says why)"
        )
        assert "Nobody waits." not in text
