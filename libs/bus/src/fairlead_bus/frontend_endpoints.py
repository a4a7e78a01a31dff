"""Endpoints where a frontend behind the bus takes its verbs: open while it leads, deaf to leaders of the past."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.endpoints import Asked, Endpoint
from fairlead_bus.errors import Rejected
from fairlead_bus.ownership.leadership import Leadership
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import Codec, to_packed
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.frontend.verbs import (
    CREATE_JOBS,
    DELETE_JOBS,
    FENCED,
    LARGEST_REQUEST,
    MALFORMED,
    MOST_IN_A_REQUEST,
    SET_LEVELS,
    UNAVAILABLE,
    CreateJob,
    CreateReplies,
    CreateReply,
    DeleteJob,
    DeleteReplies,
    DeleteReply,
    FrontendRequest,
    LevelReplies,
    LevelReply,
    SetLevel,
    SetLevels,
)
from fairlead_contracts.subjects import FrontendVerb


class FrontendVerbs(Protocol):
    """A frontend: does what it is asked for and says of each item what became of it, once that is durable.

    Each verb may raise `Rejected` for the request as a whole; nothing of it may be lost by asking again.
    """

    async def create(self, jobs: Sequence[CreateJob]) -> Sequence[CreateReply]:
        """Creates jobs; one reply each."""

    async def set_levels(self, levels: Sequence[SetLevel]) -> Sequence[LevelReply]:
        """Sets levels, in this order; one reply each."""

    async def delete(self, jobs: Sequence[DeleteJob]) -> Sequence[DeleteReply]:
        """Deletes jobs; one reply each."""


class EpochFence:
    """The highest epoch that a frontend has obeyed.

    Args:
        kept: the highest epoch, as it was kept before.
        keep: called with each new one, before the request that brought it is carried out.
    """

    def __init__(self, kept: int, keep: Callable[[int], None]) -> None:
        self._highest = kept
        self._keep = keep
        self._own: int | None = None

    def check(self, epoch: int, own: int) -> None:
        """Lets a request pass, unless a later leader was obeyed already.

        Args:
            own: epoch of the frontend's own leadership. Both are sequences of one stream: whatever was obeyed before the
                frontend took its lead is below that, or the stream was made anew since.

        Raises:
            Rejected: a later leader was obeyed already.
        """
        if own != self._own:
            self._own = own
            if self._highest >= own:
                self._highest = 0
        if epoch < self._highest:
            raise Rejected(FENCED, f"epoch {epoch} is over: a leader of epoch {self._highest} was obeyed")
        if epoch > self._highest:
            self._highest = epoch
            self._keep(epoch)


@dataclass(eq=False)
class FrontendEndpoints:
    """The subjects of a frontend's verbs; the endpoints of its announcer."""

    bus: Bus
    cluster: str
    frontend: FrontendVerbs
    leadership: Leadership
    """Leadership for the cluster's state: who does not own that may change nothing."""
    fence: EpochFence
    """Refuses leaders of the past."""

    def __post_init__(self) -> None:
        self._handlers: dict[FrontendVerb, Callable[[Asked], Awaitable[bytes]]] = {
            "create": self._create,
            "levels": self._set_levels,
            "delete": self._delete,
        }
        self._endpoints: list[Endpoint] = []

    async def open(self) -> None:
        """See `RequestEndpoints`."""
        if self._endpoints:
            return
        for verb, handle in self._handlers.items():
            self._endpoints.append(await self.bus.serve(subjects.frontend(self.cluster, verb), handle))

    async def close(self) -> None:
        """See `RequestEndpoints`."""
        endpoints, self._endpoints = self._endpoints, []
        for endpoint in endpoints:
            await endpoint.close()

    async def _create(self, asked: Asked) -> bytes:
        request = self._admitted(CREATE_JOBS, asked)
        return to_packed(CreateReplies(replies=list(await self.frontend.create(request.jobs))))

    async def _set_levels(self, asked: Asked) -> bytes:
        request = self._admitted(SET_LEVELS, asked)
        return to_packed(LevelReplies(replies=list(await self.frontend.set_levels(request.levels))))

    async def _delete(self, asked: Asked) -> bytes:
        request = self._admitted(DELETE_JOBS, asked)
        return to_packed(DeleteReplies(replies=list(await self.frontend.delete(request.jobs))))

    def _admitted[R: FrontendRequest](self, codec: Codec[R], asked: Asked) -> R:
        """The request, where it can be read and comes from no leader of the past."""
        own = self.leadership.epoch
        if (
            own is None
        ):  # a process that was paused finds requests that waited for it: by now another may lead
            raise Rejected(UNAVAILABLE, f"this process does not lead for cluster {self.cluster!r}; ask again")
        request = read_request(codec, asked.payload)
        self.fence.check(request.epoch, own)
        return request


def read_request[R: FrontendRequest](codec: Codec[R], payload: bytes) -> R:
    """The batch in a request.

    Raises:
        Rejected: the body is no such request, or too large.
    """
    if len(payload) > LARGEST_REQUEST:
        raise Rejected(MALFORMED, f"a request of {len(payload)} bytes; {LARGEST_REQUEST} are taken")
    try:
        request = codec.decode(payload)
    except ContractError as error:
        raise Rejected(MALFORMED, str(error)) from error
    items = len(request.levels) if isinstance(request, SetLevels) else len(getattr(request, "jobs", ()))
    if items > MOST_IN_A_REQUEST:
        raise Rejected(MALFORMED, f"a request of {items} items; {MOST_IN_A_REQUEST} are taken")
    return request
