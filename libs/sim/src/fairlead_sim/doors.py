"""The doors of a simulated cluster: the subjects on which the leader, and nobody else, takes requests."""

from collections.abc import Awaitable, Callable

from fairlead_bus import Asked, Bus, Endpoint, Leadership, Rejected
from fairlead_contracts import subjects
from fairlead_contracts.subjects import SimVerb
from fairlead_sim.service import UNAVAILABLE, SimService

type Handler = Callable[[Asked], Awaitable[bytes]]


class SimDoors:
    """The subjects on which requests come in."""

    def __init__(self, bus: Bus, cluster: str, service: SimService, leadership: Leadership) -> None:
        """Closed."""
        self._bus = bus
        self._cluster = cluster
        self._leadership = leadership
        self._handlers: dict[SimVerb, Handler] = {
            "create": service.create,
            "creates": service.create_several,
            "level": service.level,
            "delete": service.delete,
        }
        self._endpoints: list[Endpoint] = []

    async def open(self) -> None:
        """See `Doors`."""
        if self._endpoints:
            return
        for verb, handle in self._handlers.items():
            self._endpoints.append(
                await self._bus.serve(subjects.sim(self._cluster, verb), self._guarded(handle))
            )

    async def close(self) -> None:
        """See `Doors`."""
        endpoints, self._endpoints = self._endpoints, []
        for endpoint in endpoints:
            await endpoint.close()

    def _guarded(self, handle: Handler) -> Handler:
        """A process that was paused finds requests that waited for it: by now another may lead."""

        async def guarded(asked: Asked) -> bytes:
            if self._leadership.epoch is None:
                raise Rejected(
                    UNAVAILABLE, f"this process does not lead for cluster {self._cluster!r}; ask again"
                )
            return await handle(asked)

        return guarded
