"""Duplicates: submissions are one by tenant, id and body under the shipped grants, never by a header that anybody may set."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from fairlead_admitter.app import main as admitter
from fairlead_admitter.settings import AdmitterSettings
from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.server.accounts import AccountLayout
from fairlead_contracts.messages.submissions import (
    Accepted,
    AnyAnswer,
    Cancelling,
    Ended,
    Refused,
    read_submission,
)
from fairlead_runtime.settings import ServiceSettings
from fairlead_scorer import ScorerSettings
from fairlead_scorer import main as scorer
from fairlead_testkit import eventually
from fairlead_testkit.by_hand.bus_harness import serving
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, FakeCluster, set_up
from fairlead_testkit.by_hand.people import hear_answers, submit
from fairlead_testkit.inputs.builders import a_body, a_cancellation
from fairlead_testkit.nats_servers.guarded import guarded_server

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TENANTS = ("team-a", "team-b")
LAYOUT = AccountLayout(clusters=[CLUSTER], groups={tenant: [tenant] for tenant in TENANTS}, operators=[])


class TenantConnections:
    """The tenants' connections, and what they heard."""

    def __init__(self) -> None:
        self.buses: dict[str, Bus] = {}
        self.heard: dict[str, list[AnyAnswer]] = {tenant: [] for tenant in TENANTS}
        self.changed = asyncio.Event()

    async def listen(self, tenant: str) -> None:
        """Note the answers to a tenant, as it may hear them."""

        def take(answer: AnyAnswer) -> None:
            self.heard[tenant].append(answer)
            self.changed.set()

        await hear_answers(self.buses[tenant], take, tenant)

    async def submit(self, tenant: str, payload: bytes, *, msg_id: str, cluster: str = CLUSTER) -> None:
        """Publish under a Nats-Msg-Id."""
        await submit(self.buses[tenant], payload, tenant=tenant, cluster=cluster, msg_id=msg_id)

    async def answers(self, tenant: str, count: int) -> list[AnyAnswer]:
        """Answers that the tenant heard, once there are so many."""
        answers = self.heard[tenant]
        await eventually(lambda: len(answers) >= count, on=self.changed, what=f"{count} answers to {tenant}")
        return answers


@pytest.fixture
async def tenants(tmp_path: Path) -> AsyncIterator[TenantConnections]:
    """An admitter, a scorer and a cluster under the shipped grants, and two tenants."""
    async with AsyncExitStack() as stack:
        guarded = stack.enter_context(guarded_server(tmp_path, LAYOUT.accounts))

        async def user(name: str) -> Bus:
            return await stack.enter_async_context(connect(guarded.settings(name), name=name))

        await set_up(await user("root"))
        cluster = FakeCluster(await user(f"watcher.{CLUSTER}"))
        await cluster.come_up()
        await cluster.declare()
        made = TenantConnections()
        for tenant in TENANTS:
            made.buses[tenant] = await user(f"tenant.{tenant}")
            await made.listen(tenant)
        routing = settings(ScorerSettings, guarded.settings("scorer"))
        await stack.enter_async_context(serving(scorer, routing, "s1"))
        taking = settings(
            AdmitterSettings, guarded.settings(f"admitter.{CLUSTER}"), cluster=CLUSTER, tick_seconds=0.2
        )
        await stack.enter_async_context(serving(admitter, taking, "a1"))
        yield made


def settings[S: ServiceSettings](kind: type[S], user: ConnectionSettings, **more: object) -> S:
    return msgspec.convert({"nats_url": user.url, "nats_nkey_seed": user.nkey_seed, **more}, kind)


@pytest.mark.parametrize("cluster", [CLUSTER, "any"])
async def test_one_tenants_msg_id_never_swallows_anothers_job(
    tenants: TenantConnections, cluster: str
) -> None:
    await tenants.submit("team-a", a_body(id=None), msg_id="nightly", cluster=cluster)
    await tenants.submit("team-b", a_body(id=None), msg_id="nightly", cluster=cluster)
    for tenant in TENANTS:
        [answer] = await tenants.answers(tenant, 1)
        assert isinstance(answer, Accepted)
        assert (answer.tenant, answer.id) == (tenant, "nightly")


@pytest.mark.parametrize("cluster", [CLUSTER, "any"])
async def test_the_same_id_with_another_body_is_refused_whatever_the_msg_id(
    tenants: TenantConnections, cluster: str
) -> None:
    await tenants.submit("team-a", a_body(id="x", pods=1), msg_id="m", cluster=cluster)
    await tenants.answers("team-a", 1)
    await tenants.submit("team-a", a_body(id="x", pods=2), msg_id="m", cluster=cluster)
    refused = (await tenants.answers("team-a", 2))[1]
    assert isinstance(refused, Refused)
    assert (refused.id, refused.field) == ("x", "id")
    await tenants.submit("team-a", a_body(id="x", pods=1), msg_id="m", cluster=cluster)
    assert isinstance((await tenants.answers("team-a", 3))[2], Accepted)


async def test_a_tenant_takes_its_own_job_back_and_nobody_elses(tenants: TenantConnections) -> None:
    await tenants.submit("team-a", a_body(id="x"), msg_id="m")
    await tenants.answers("team-a", 1)
    await tenants.submit("team-b", a_cancellation("x"), msg_id="c")
    [refused] = await tenants.answers("team-b", 1)
    assert isinstance(refused, Refused)
    assert (refused.id, refused.field) == ("x", "id")
    await tenants.submit("team-a", a_cancellation("x"), msg_id="of its own")
    _, *cancelled = await tenants.answers("team-a", 3)
    assert [type(answer) for answer in cancelled] == [Cancelling, Ended]


async def test_the_same_msg_id_with_another_body_is_refused(tenants: TenantConnections) -> None:
    """A body without an id is named after the header, within its tenant."""
    await tenants.submit("team-a", a_body(id=None, pods=1), msg_id="m")
    await tenants.answers("team-a", 1)
    await tenants.submit("team-a", a_body(id=None, pods=2), msg_id="m")
    refused = (await tenants.answers("team-a", 2))[1]
    assert isinstance(refused, Refused)
    assert (refused.id, refused.field) == ("m", "id")


async def test_nobody_gets_in_the_way_of_the_copy_that_a_scorer_makes(tenants: TenantConnections) -> None:
    """A tenant that knows another's body knew the Msg-Id that the copy for one cluster would have."""
    body = a_body(id="x")
    digest = read_submission(body, tenant="team-a", fallback_id="").digest()
    await tenants.submit("team-b", a_body(id="decoy"), msg_id=f"routed-team-a-x-{digest}")
    await tenants.answers("team-b", 1)
    await tenants.submit("team-a", body, msg_id="m", cluster="any")
    assert isinstance((await tenants.answers("team-a", 1))[0], Accepted)
