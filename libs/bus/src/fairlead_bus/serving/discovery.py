"""Being found by the `nats micro` tools: what a service is, where it answers, how it fares.

Source: the NATS service API, version 1 (ADR-32 of nats-architecture-and-design). nats-py has it too, but handles the
questions of an endpoint one after the other.
"""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.endpoints import Endpoint

_TYPE = "io.nats.micro.v1"
_VERBS = ("PING", "INFO", "STATS")


class Service:
    """Answers `$SRV.PING`, `$SRV.INFO` and `$SRV.STATS` for a set of endpoints.

    Args:
        bus: the connection.
        name: of the service, the same for all its replicas.
        version: a semantic version.
        endpoints: served already.
        description: for people.
    """

    def __init__(
        self, bus: Bus, *, name: str, version: str, endpoints: Sequence[Endpoint], description: str = ""
    ) -> None:
        self._bus = bus
        self._identity = {"name": name, "id": secrets.token_hex(8), "version": version, "metadata": {}}
        self._name = name
        self._description = description
        self._endpoints = endpoints
        self._started = datetime.now(UTC)
        self._subscriptions: list[Subscription] = []

    async def open(self) -> None:
        """Begins to answer: to all, to those who name the service, and to those who name this replica."""
        for verb in _VERBS:
            for which in ("", f".{self._name}", f".{self._name}.{self._identity['id']}"):
                subject = f"$SRV.{verb}{which}"
                self._subscriptions.append(await self._bus.wire.listen(subject, self._answer))

    async def close(self) -> None:
        """Ends the service, which is not found any more."""
        for subscription in self._subscriptions:
            await self._bus.wire.unlisten(subscription)
        self._subscriptions.clear()

    async def _answer(self, message: Msg) -> None:
        verb = message.subject.split(".")[1]
        facts = {"PING": self._ping, "INFO": self._info, "STATS": self._stats}[verb]()
        await self._bus.wire.send(message.reply, msgspec.json.encode({**self._identity, **facts}))

    def _ping(self) -> dict[str, object]:
        return {"type": f"{_TYPE}.ping_response"}

    def _info(self) -> dict[str, object]:
        endpoints = [{**_named(endpoint), "metadata": {}} for endpoint in self._endpoints]
        return {
            "type": f"{_TYPE}.info_response",
            "description": self._description,
            "endpoints": endpoints,
        }

    def _stats(self) -> dict[str, object]:
        return {
            "type": f"{_TYPE}.stats_response",
            "started": self._started,
            "endpoints": [{**_named(endpoint), **_figures(endpoint)} for endpoint in self._endpoints],
        }


def _named(endpoint: Endpoint) -> dict[str, object]:
    return {
        "name": endpoint.subject.replace(".", "-").replace("*", "any").replace(">", "all"),
        "subject": endpoint.subject,
        "queue_group": endpoint.queue,
    }


def _figures(endpoint: Endpoint) -> dict[str, object]:
    return {
        "num_requests": endpoint.served,
        "num_errors": endpoint.failed,
        "last_error": endpoint.last_error,
        "processing_time": endpoint.busy_nanoseconds,
        "average_processing_time": endpoint.busy_nanoseconds // max(1, endpoint.served),
    }
