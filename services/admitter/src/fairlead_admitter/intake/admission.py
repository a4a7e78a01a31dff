"""Faults of a submission, told so that its sender can put it right. Pure: a delivery in, a ruling out."""

from collections.abc import Mapping

from fairlead_admitter.errors import FrontendRefusedError
from fairlead_admitter.intake.creation import Creation, JobRefusedError
from fairlead_admitter.intake.entry_queue import entry_queue_for
from fairlead_admitter.intake.limits import LimitExceeded
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.report.replies import Sender, SubmissionRefusal
from fairlead_bus import Delivery
from fairlead_contracts import subjects
from fairlead_contracts.base.errors import (
    FieldError,
    MalformedError,
    UnsupportedVersionError,
    shown,
)
from fairlead_contracts.messages.submissions import (
    Cancellation,
    RefusalReason,
    Submission,
    answer_id,
    fallback_id,
    field_of,
    read_request,
)
from fairlead_policy.rules.rulebook import Rulebook

_MOST_NAMED = 20


class SubmissionCheck:
    """Rules on submissions by the message alone, then by policy, then by the cluster."""

    def __init__(self, facts: ClusterFacts, policy: PolicyView) -> None:
        self._facts = facts
        self._policy = policy

    def rule(self, delivery: Delivery) -> Submission | Cancellation | SubmissionRefusal:
        """The submission or cancellation, or why it is refused. Cluster and policy must be known."""
        tenant = subjects.tenant_of_submit(delivery.subject)
        sent = delivery.msg_id, delivery.stream_seq
        try:
            asked = read_request(delivery.payload, tenant=tenant, fallback_id=fallback_id(*sent))
        except (FieldError, UnsupportedVersionError, MalformedError) as error:
            sender = Sender(tenant, answer_id(delivery.payload, *sent))
            return _refusal(sender, field_of(error, delivery.payload), _kind_of(error))
        return asked if isinstance(asked, Cancellation) else self._check(asked) or asked

    def refused_creation(self, submission: Submission, outcome: Creation) -> SubmissionRefusal:
        """The refusal of a submission for which the frontend has another job of that name, or no queue."""
        sender = Sender(submission.tenant, submission.id)
        if outcome is Creation.CONFLICT:
            error = FieldError(
                "id", submission.id, "was used before for another body; a new job needs a new id"
            )
            return _refusal(sender, error, "conflict")
        return _refusal(sender, self._no_queue(submission), "queue")

    def refused_for_now(self, submission: Submission, objection: LimitExceeded) -> SubmissionRefusal:
        """The refusal of a submission because there is too much of its tenant, or of all."""
        return _refusal(Sender(submission.tenant, submission.id), objection.error, objection.label)

    def refused_by_frontend(
        self, asked: Submission | Cancellation, error: FrontendRefusedError
    ) -> SubmissionRefusal:
        """The refusal of a job that the frontend will not take, or take away, for a reason of its own."""
        sender = Sender(asked.tenant, asked.id)
        if isinstance(error, JobRefusedError):
            demand = asked.demand if isinstance(asked, Submission) else {}
            return _refusal(sender, error.problem, _label(error.problem, demand))
        return _refusal(sender, FieldError("body", asked.id, str(error)), "field")

    def granted_class(self, submission: Submission) -> str:
        """The class that the job gets: what was asked for was granted, else it were refused."""
        rulebook = self._rulebook()
        return submission.job_class if submission.job_class is not None else rulebook.document.classes[-1]

    def _rulebook(self) -> Rulebook:
        rulebook = self._policy.rulebook
        assert rulebook is not None  # noqa: S101 # deliveries are held until a policy is known
        return rulebook

    def _check(self, submission: Submission) -> SubmissionRefusal | None:
        entries = self._facts.entries(submission.tenant)
        entry = entry_queue_for(entries, submission.queue)
        queue = entry.queue if entry is not None else self._open_queue(submission.queue)
        capacity = self._capacity(queue)
        measured = capacity is not None and not (queue and self._facts.queues[queue].able.judges_demand)
        try:
            self._rulebook().check_submission(
                submission,
                # Without a queue there is no pool to measure by: tenant and class are judged all the same, first.
                capacity=capacity if measured and capacity is not None else submission.demand,
                cluster=self._facts.cluster,
                queue=queue,
                local_queue=entry.name if entry is not None else None,
                frontend=None if queue is None else self._facts.queues[queue].frontend,
            )
            if capacity is None:
                raise self._no_queue(submission)
        except FieldError as error:
            return _refusal(Sender(submission.tenant, submission.id), error, _label(error, capacity or {}))
        return None

    def _open_queue(self, name: str | None) -> str | None:
        """A queue that every tenant may name, where the frontend has such queues."""
        queue = self._facts.queues.get(name) if name is not None else None
        return queue.name if queue is not None and queue.able.open_queues else None

    def _no_queue(self, submission: Submission) -> FieldError:
        entries, queues = self._facts.entries(submission.tenant), self._facts.queues
        # A submission may name a LocalQueue of its tenant, or a queue that is open to every tenant.
        free = {name for name, queue in queues.items() if queue.able.open_queues}
        names = free | {name for name, queue in entries.items() if queue not in free}
        usable = ", ".join(sorted(names)[:_MOST_NAMED]) or "none"
        what = "queue" if submission.queue is None else "such queue"
        reason = f"the cluster has no {what} for tenant {submission.tenant!r}, which can name: {usable}"
        return FieldError("queue", submission.queue, reason)

    def _capacity(self, queue: str | None) -> Mapping[str, int] | None:
        """The capacity behind a queue in this cluster: a job runs in one cluster, whatever else its pool joins."""
        known = self._facts.queues.get(queue) if queue is not None else None
        pool = self._facts.pools.get(known.pool) if known is not None else None
        return pool.capacity if pool is not None else None


def _kind_of(error: FieldError | UnsupportedVersionError | MalformedError) -> RefusalReason:
    match error:
        case UnsupportedVersionError():
            return "version"
        case MalformedError():
            return "malformed"
        case FieldError():
            return "size" if error.field == "body" else "field"


def _refusal(sender: Sender, error: FieldError, label: RefusalReason) -> SubmissionRefusal:
    return SubmissionRefusal(
        sender=sender, field=error.field, value=shown(error.value), reason=error.reason, label=label
    )


def _label(error: FieldError, capacity: Mapping[str, int]) -> RefusalReason:
    kind, _, resource = error.field.partition(".")
    match kind:
        case "tenant" | "class" | "queue":
            return kind
        case "demand":
            return "size" if resource in capacity else "resource"
        case _:
            return "field"
