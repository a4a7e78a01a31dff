"""Traces of the admitter's own are linked to the jobs that they concern."""

import time

from fairlead_admitter.report.job_traces import JobTraces
from fairlead_contracts.base.instants import SECOND, from_seconds
from fairlead_contracts.messages.job_traces import Span, new_trace
from fairlead_runtime.spans import Spans
from fairlead_testkit.inputs.builders import a_job


def test_a_takeover_and_a_failure_are_linked_to_their_jobs_and_kept_where_these_are_not() -> None:
    now = from_seconds(time.time())
    ago = {"first": 60, "second": 1, "of-yesterday": 86_400}
    jobs = [a_job(name, uid=name, submitted=now - seconds * SECOND) for name, seconds in ago.items()]
    for ratio, links in ((1.0, (new_trace("job", "second"), new_trace("job", "first"))), (0.0, ())):
        told: list[Span] = []

        def take(span: Span, told: list[Span] = told) -> bool:
            told.append(span)
            return True

        traces = JobTraces(Spans("admitter", "one", lambda *_: None).send_to(take, ratio), "c")
        traces.took_over(7, jobs)
        traces.failed("gpu", 2, "forbidden", jobs[1::-1])
        traces.held("team-a", "no such namespace")
        taken, failed, held = (span for span in told if span.name in {"take over", "write levels", "create"})
        assert taken.links == failed.links == links
        assert (failed.error, held.error) == ("forbidden", "no such namespace")
        assert all(span.context.kept for span in (taken, failed, held))
