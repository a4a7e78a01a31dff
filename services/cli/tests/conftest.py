"""A nats-server with the streams of a cluster called `lab`."""

from collections.abc import AsyncIterator

import pytest

from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.server.provision import provision
from fairlead_contracts import topology
from fairlead_testkit import NatsServer


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as opened:
        await provision(opened, topology.topology(["lab"]))
        yield opened


@pytest.fixture
def nats(nats_server: NatsServer, bus: Bus) -> str:
    """The address of that server."""
    assert bus.connected
    return nats_server.url
