"""Answers told again: of a tenant or of single submissions, in order, in pages, and never of another tenant."""

from collections.abc import AsyncIterator

import pytest

from fairlead_bus import Asked, Bus, ConnectionSettings, RemoteError, connect
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.questions import ANSWER_REPLY, MOST_ANSWERS, AnswerQuestion, AnswerReply
from fairlead_contracts.topology import topology
from fairlead_scorer.query import past_answers as told
from fairlead_scorer.query.past_answers import PastAnswers
from fairlead_testkit import NatsServer

pytestmark = pytest.mark.integration


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    """Three tenants' answers stand, of one of them to three submissions in turn."""
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as opened:
        await provision(opened, topology(["c1"]))
        for number in range(9):
            await opened.publish(subjects.answer("lab.1", f"s{number % 3}"), b'{"n":%d}' % number)
            await opened.publish(subjects.answer("lab", f"s{number % 3}"), b'{"n":-1}')
        await opened.serve(subjects.ask_filter("answer"), PastAnswers(opened).answer)
        yield opened


async def ask(bus: Bus, question: AnswerQuestion, tenant: str | None = "lab.1") -> AnswerReply:
    return ANSWER_REPLY.decode(await bus.request(subjects.ask("answer", tenant), to_json(question)))


NAMED: tuple[tuple[list[str], list[int]], ...] = (
    (["s2", "s0"], [0, 2, 3, 5, 6, 8]),
    (["s1"], [1, 4, 7]),
    (["none"], []),
    ([], []),
)
"""Submissions that are asked about, and the numbers of their answers."""


def told_of(reply: AnswerReply) -> list[bytes]:
    return [bytes(answer) for answer in reply.answers]


@pytest.mark.parametrize(
    ("submissions", "numbers", "limit"),
    [
        *((None, range(9), limit) for limit in (3, 4, 100)),
        *((names, numbers, limit) for names, numbers in NAMED for limit in (1, 4, 100)),
    ],
)
async def test_all_that_a_tenant_was_told_is_told_in_order_page_by_page(
    bus: Bus, submissions: list[str] | None, numbers: list[int], limit: int
) -> None:
    """Where submissions are named, a page may hold one answer: others cost time, of which a tenant has a quarter of a second."""
    found: list[bytes] = []
    reply = await ask(bus, AnswerQuestion(submissions=submissions, limit=limit))
    found += told_of(reply)
    while reply.more:
        assert len(reply.answers) == limit
        reply = await ask(bus, AnswerQuestion(submissions=submissions, limit=limit, after=reply.after))
        found += told_of(reply)
    assert found == [b'{"n":%d}' % number for number in numbers]


@pytest.mark.parametrize("submissions", [None, ["many"]])
async def test_a_page_of_answers_costs_the_server_a_few_calls(
    bus: Bus, submissions: list[str] | None
) -> None:
    before = await ask(bus, AnswerQuestion())
    for _ in range(MOST_ANSWERS):
        await bus.publish(subjects.answer("lab.1", "many"), b"{}")
    calls: list[str] = []

    async def heard(asked: Asked) -> None:
        calls.append(asked.subject)

    await bus.subscribe_core("$JS.API.>", heard)
    reply = await ask(bus, AnswerQuestion(submissions=submissions, after=before.after))
    assert (len(reply.answers), reply.more) == (MOST_ANSWERS, False)
    assert 2 <= len(calls) <= 4


async def test_what_is_told_later_is_had_from_where_the_last_reply_ended(bus: Bus) -> None:
    before = await ask(bus, AnswerQuestion())
    assert not (await ask(bus, AnswerQuestion(after=before.after))).answers
    await bus.publish(subjects.answer("lab.1", "new"), b'{"n":99}')
    assert told_of(await ask(bus, AnswerQuestion(after=before.after))) == [b'{"n":99}']


async def test_a_reply_is_no_larger_than_a_message_may_be(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "MOST_BYTES", 20)
    reply = await ask(bus, AnswerQuestion())
    assert (len(reply.answers), reply.more) == (3, True)


async def test_all_tenants_are_told_on_their_own_subject_alone(bus: Bus) -> None:
    assert len((await ask(bus, AnswerQuestion(limit=100), tenant=None)).answers) == 18
    for question, field in (
        (AnswerQuestion(tenant="lab"), "tenant"),
        (AnswerQuestion(submissions=[""]), "submissions"),
    ):
        with pytest.raises(RemoteError, match=field):
            await ask(bus, question)
    with pytest.raises(RemoteError, match="must name one tenant"):
        await ask(bus, AnswerQuestion(submissions=["s1"]), tenant=None)


async def test_a_tenant_that_reads_all_its_answers_for_long_may_go_on_with_single_ones(bus: Bus) -> None:
    """The server looks at all that it was told each time, and takes nobody's answer meanwhile."""

    async def ask_on() -> None:
        while True:
            await ask(bus, AnswerQuestion())

    with pytest.raises(RemoteError, match=r"all answers of lab\.1 take long to read: ask again in \d+ s"):
        await ask_on()
    assert len((await ask(bus, AnswerQuestion(submissions=["s1"]))).answers) == 3
    assert len((await ask(bus, AnswerQuestion(), tenant="lab")).answers) == 9
    assert len((await ask(bus, AnswerQuestion(), tenant=None)).answers) == 18
