"""Lateness of levels, as the cluster's admitter states it."""

import pytest

from fairlead_bus import Bucket, ConnectionSettings, connect
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.inputs.builders import a_leader
from fairlead_testkit.timing.in_hand import beside
from fairlead_watcher.admitter import Lateness


@pytest.mark.integration
async def test_changes_rest_as_long_as_the_own_admitter_says_and_no_longer_than_it_leads(
    nats_server: NatsServer,
) -> None:
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
        await provision(bus, topology.topology(["c1"]))
        members, lateness = Bucket(bus, topology.MEMBERS), Lateness(bus, "c1")
        assert lateness.due() == 0.0
        async with beside(lateness.run()):
            await members.put(subjects.leader_key("admitter", "c2"), to_json(a_leader(late_by=0.9)))
            await members.put(subjects.leader_key("admitter", "c1"), to_json(a_leader(late_by=0.3)))
            await eventually(lambda: 0.0 < lateness.due() <= 0.3, 20, what="it is late")
            await members.put(subjects.leader_key("admitter", "c1"), to_json(a_leader()))
            await eventually(lambda: lateness.due() == 0.0, 20, what="it is late no more")
            await members.put(subjects.leader_key("admitter", "c1"), to_json(a_leader(late_by=0.3)))
            await eventually(lambda: 0.0 < lateness.due() <= 0.3, 20, what="it is late again")
            await members.delete(subjects.leader_key("admitter", "c1"))
            await eventually(lambda: lateness.due() == 0.0, 20, what="nobody leads")
