"""Changes that would move a job, asked of several scorers: as one order with all jobs says, to every field."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import Micros, from_datetime
from fairlead_contracts.messages.explanations import WhatIf
from fairlead_contracts.messages.questions import EXPLAIN_REPLY, ExplainQuestion, ExplainReply, Explanation
from fairlead_contracts.messages.state import Phase, State, subject_of
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_scorer import ScorerSettings, main
from fairlead_scorer.query.names import concealed
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.pool import ScoredPool
from fairlead_testkit import NatsServer
from fairlead_testkit.by_hand.bus_harness import BusHarness
from fairlead_testkit.inputs.builders import NOW, a_document, a_job, a_pool, a_queue
from fairlead_testkit.oracles.told_what_if import what_if_in
from fairlead_testkit.timing.in_hand import all_steps

pytestmark = pytest.mark.integration
FACTS: list[State] = [
    a_pool(),
    a_queue(),
    a_job("runs", gpu=4, phase=Phase.RUNNING, started=NOW),
    a_job("runs-too", gpu=3, scope="team-b", phase=Phase.RUNNING, started=NOW),
    *(a_job(f"a{number}", submitted=NOW + number) for number in range(5)),
    *(a_job(f"b{number}", scope="team-b", gpu=2, submitted=NOW + number) for number in range(3)),
]


def flat() -> PolicyDocument:
    return a_document()


def tree() -> PolicyDocument:
    """team-a below an organisation of its own."""
    document = a_document()
    tenants = [
        msgspec.structs.replace(tenant, parent="org" if tenant.name == "team-a" else None)
        for tenant in document.tenants
    ]
    org = msgspec.structs.replace(tenants[0], name="org", parent=None)
    return msgspec.structs.replace(document, tenants=[*tenants, org])


def terms() -> PolicyDocument:
    """Classes as terms: infinite shares are passed over by an end that makes one finite."""
    return a_document(class_mode="additive", class_weights=dict.fromkeys(a_document().classes, 1.0))


@asynccontextmanager
async def scored(
    nats_server: NatsServer, tmp_path: Path, document: PolicyDocument, facts: Sequence[State]
) -> AsyncIterator[BusHarness]:
    """Two scorers that share the pool."""
    async with BusHarness.open(nats_server, tmp_path) as opened, AsyncExitStack() as scorers:
        await opened.policy(document)
        await opened.state(*facts)
        await opened.mark()
        for name in ("s1", "s2"):
            await scorers.enter_async_context(opened.serving(main, ScorerSettings, name, answer_seconds=1.0))
        await opened.owned_by("s1", "s2")
        await opened.settled()
        yield opened


@pytest.fixture(params=[flat, tree])
async def harness(
    request: pytest.FixtureRequest, nats_server: NatsServer, tmp_path: Path
) -> AsyncIterator[tuple[BusHarness, PolicyDocument]]:
    document: PolicyDocument = request.param()
    async with scored(nats_server, tmp_path, document, FACTS) as opened:
        yield opened, document


async def explain(harness: BusHarness, job: str, tenant: str | None = None) -> tuple[Explanation, int]:
    subject = subjects.ask("explain", tenant)
    payload = await harness.bus.request(subject, to_json(ExplainQuestion(job=job)), timeout=5)
    reply: ExplainReply = EXPLAIN_REPLY.decode(payload)
    [found] = reply.found
    return found, from_datetime(reply.at)


def _what_if(pool: ScoredPool, uid: str, at: Micros) -> WhatIf:
    position = pool.position(uid, at)
    assert position is not None
    return what_if_in(pool.order_at(at), position)


async def test_scorers_say_together_what_one_order_says(harness: tuple[BusHarness, PolicyDocument]) -> None:
    opened, document = harness
    cache = ClusterCache()
    all_steps(cache.adopting(document, 1))
    all_steps(cache.learning({subject_of(state): state for state in FACTS}))
    pool = cache.pools["c1/gpu"]
    causes = set()
    for job in [*(f"a{number}" for number in range(5)), *(f"b{number}" for number in range(3))]:
        found, at = await explain(opened, job)
        assert found.what_if == _what_if(pool, found.uid, at)
        assert found.what_if is not None
        causes |= {move.cause for move in found.what_if.counterfactuals}
    # A start out of turn is told of tenants that stand alone.
    assert causes >= ({"ends", "starts", "class", "weight"} if document == flat() else {"ends", "class"})


async def test_scorers_say_together_where_a_job_stands_once_its_share_is_finite(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """The pool has no tpu: who holds one stands behind all others, as who is not in the policy does."""
    facts = [
        *FACTS[:2],
        a_job("odd", scope="team-b", demand={"tpu": 2000}, phase=Phase.RUNNING, started=NOW),
        a_job("asks", demand={"tpu": 2000}, submitted=NOW),
        a_job("late", scope="stranger", submitted=NOW + 1),
        a_job("b", scope="team-b", submitted=NOW + 2),
    ]
    async with scored(nats_server, tmp_path, terms(), facts) as opened:
        cache = ClusterCache()
        all_steps(cache.adopting(terms(), 1))
        all_steps(cache.learning({subject_of(state): state for state in facts}))
        pool = cache.pools["c1/gpu"]
        found, at = await explain(opened, "b")
        assert found.what_if == _what_if(pool, found.uid, at)
        assert found.rank == 2
        assert "It becomes number 2 once its own tenant gives back 2 of its 2 tpu." in found.reasons


async def test_the_words_say_what_would_move_it_and_tenants_hear_no_names(
    harness: tuple[BusHarness, PolicyDocument],
) -> None:
    opened, document = harness
    found, _ = await explain(opened, "b0")
    text = " ".join(found.reasons)
    if document == flat():
        # a4 stands at 8 of 16 GPUs over three quarters, two thirds; a0 at 4 of them, a third.
        assert "It goes before a4 of team-a once its own tenant gives back 1 of its 3 gpu." in text
        assert "It becomes first once its own tenant gives back 2 of its 12 cpu and 2 of its 3 gpu" in text
        assert "a4 of team-a falls behind it once team-a starts 1 gpu more before that one" in text
        assert (
            "It becomes first if operators give team-b a weight above 3.858; a smaller one may be enough."
            in text
        )
    assert "It fits into what its pool has free, together with all jobs before it." in text
    assert "As urgent it would be number 1" in text
    assert "Before it stands a4 of team-a" in text
    own, _ = await explain(opened, "b0", "team-b")
    assert own.what_if is not None
    assert found.what_if is not None
    assert own.what_if == concealed(found.what_if, "team-b") != found.what_if
    assert "Before it stands a job of team-a" in " ".join(own.reasons)
    assert "a4" not in " ".join(own.reasons)
