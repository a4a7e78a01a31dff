"""Making jobs in a frontend: the port, what goes through it, and patience with a frontend that is down."""

import asyncio
import enum
import random
from typing import Protocol

import msgspec

from fairlead_admitter.errors import FrontendDownError, FrontendRefusedError
from fairlead_contracts.errors import FieldError
from fairlead_contracts.instants import Micros
from fairlead_contracts.submissions import Submission

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 2.0


class JobOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A checked submission, as a frontend makes a job of it.

    The job's scope is the tenant and its name is the submission's id: making it twice is making it once.
    """

    submission: Submission
    submitted: Micros
    """When the server took the submission in: the same at each delivery."""
    urgency: str = ""
    """The class that the job has, asked for or not."""
    traceparent: str | None = None

    @property
    def scope(self) -> str:
        """Namespace or account of the job."""
        return self.submission.tenant

    @property
    def id(self) -> str:
        """The job's name in its scope."""
        return self.submission.id


class Creation(enum.StrEnum):
    """What became of an order."""

    CREATED = "created"
    EXISTS = "exists"
    """The same order was carried out before: done."""
    CONFLICT = "conflict"
    """A job of that name was made from another body."""
    NO_QUEUE = "no-queue"
    """The frontend has no such queue, or none for the scope."""


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome, the queue that the job stands in, and the name that it has there."""

    outcome: Creation
    queue: str = ""
    job: str = ""
    """Empty where it is the submission's id."""


class JobRefusedError(FrontendRefusedError):
    """The frontend will not make a job of the submission, and its sender can be told which field is why."""

    def __init__(self, problem: FieldError) -> None:
        super().__init__(str(problem))
        self.problem = problem


class JobCreator(Protocol):
    """Makes jobs in a frontend, idempotent by scope and id."""

    async def create(self, order: JobOrder) -> Created:
        """Carry the order out, or say what stands in its way.

        Raises:
            FrontendDownError: nobody knows whether it was carried out; ask again.
            FrontendRefusedError: the frontend will not take it.
        """


class PatientCreator:
    """Asks again until the frontend answers.

    A frontend that is down for an hour is no fault of any submission: while it is, deliveries stay in progress and
    use up none of their attempts. Only the end of this process, or of its lead, gives them back to the stream.
    """

    def __init__(self, creator: JobCreator) -> None:
        self._creator = creator
        self.held = 0
        """How many orders wait for the frontend to answer again."""

    async def create(self, order: JobOrder) -> Created:
        """As the port, but never FrontendDownError.

        Raises:
            FrontendRefusedError: the frontend will not take it.
        """
        try:
            return await self._creator.create(order)
        except FrontendDownError:
            self.held += 1
        try:
            return await self._insist(order)
        finally:
            self.held -= 1

    async def _insist(self, order: JobOrder) -> Created:
        wait = _FIRST_WAIT
        while True:
            # Jitter: held orders shall not all ask in the same instant.
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 # no secret
            try:
                return await self._creator.create(order)
            except FrontendDownError:
                wait = min(2 * wait, _LONGEST_WAIT)
