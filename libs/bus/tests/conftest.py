"""A connection with all rights on this test's own server."""

from collections.abc import AsyncIterator

import pytest

from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.observer import BusTally
from fairlead_bus.server.provision import provision
from fairlead_contracts.topology import topology
from fairlead_testkit import NatsServer


@pytest.fixture
def settings(nats_server: NatsServer) -> ConnectionSettings:
    return ConnectionSettings(url=nats_server.url)


@pytest.fixture
async def tally() -> BusTally:
    return BusTally()


@pytest.fixture
async def bus(settings: ConnectionSettings, tally: BusTally) -> AsyncIterator[Bus]:
    """Connected, on a server that holds the whole topology for the cluster `c1`."""
    async with connect(settings, name="ops", observer=tally) as opened:
        await provision(opened, topology(["c1"]))
        yield opened
