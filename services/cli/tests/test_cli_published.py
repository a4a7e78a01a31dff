"""Answers as programs read them: units in every value, one name for a thing, as output.schema.json says."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import yaml
from jsonschema import Draft202012Validator

from fairlead_cli.options import Format
from fairlead_cli.outcomes import (
    ClassGranted,
    ControlSaid,
    NatsChecked,
    NatsProvisioned,
    PolicyChecked,
    PolicyCompared,
    PolicyPut,
)
from fairlead_cli.output_schema import ANSWERS, output_schema
from fairlead_cli.paper.explaining import PaperExplanations
from fairlead_cli.policy.history import OperatorWord
from fairlead_cli.printing import as_text, print_stream
from fairlead_cli.published import published
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.decisions import EffectiveJob, Position, SiblingStanding, TenantShare
from fairlead_contracts.messages.explanations import (
    Counterfactual,
    Neighbour,
    RoomForecast,
    ShareBreakdown,
    TenantHolding,
    WhatIf,
)
from fairlead_contracts.messages.questions import (
    Adherence,
    AheadOf,
    Approval,
    ExplainReply,
    Explanation,
    PoolQueue,
    PoolTenants,
    QueueReply,
    RankedPosition,
    Shortfall,
    Steering,
    TenantLine,
    TenantsReply,
)
from fairlead_policy.fit.unschedulable import CardRefusals

SCHEMA = Path(__file__).parents[3] / "docs" / "output.schema.json"
GPU = "nvidia.com/gpu"
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SUBMITTED = 1_795_258_800_000_000
POSITION = Position(
    uid="u1",
    scope="team-a",
    id="train",
    tenant="team-a",
    job_class="urgent",
    dominant=GPU,
    use=32_500,
    tag=0.5,
    key=2078.5,
    submitted=SUBMITTED,
    demand={GPU: 8000, "memory": 64 * 1024**3, "cpu": 500},
    top="org",
    effective=EffectiveJob(
        uid="u0", id="head", job_class="urgent", dominant="cpu", use=1500, submitted=SUBMITTED
    ),
    within=[SiblingStanding(tenant="team-a", dominant=GPU, use=8000, tag=0.25)],
)
STEERING = Steering(
    cluster="prod",
    frontend="kueue",
    enforcement="exact",
    adherence=Adherence(since=AT, admissions=5, missed=1, idle={GPU: 90_000.0}),
)
RANKED = RankedPosition(
    rank=0, position=POSITION, share=0.5, entitled=1.0, approved=Approval(job_class="urgent", by="ada")
)
STANDING = TenantShare(
    tenant="team-a", weight=3.0, entitled=0.5, use={GPU: 32_000}, share=0.5, dominant=GPU, waiting=1, running=4,
    past={GPU: 500},
)  # fmt: skip
WHAT_IF = WhatIf(
    breakdown=ShareBreakdown(tenant="team-a", weight=3.0, running={GPU: 32_000}, shares={GPU: 1.0}),
    nearest=[Neighbour(uid="u2", scope="b", id="other", tenant="b", job_class="normal", term="share")],
    counterfactuals=[
        Counterfactual(cause="ends", amounts={GPU: 1000}, at=AT),
        Counterfactual(cause="class", job_class="urgent"),
    ],
    room=RoomForecast(free={GPU: -500}, holders=[TenantHolding(tenant="b", resource=GPU, amount=2000)]),
)
EXAMPLES: dict[str, msgspec.Struct] = {
    "queue": QueueReply(
        at=AT, pools=[PoolQueue(pool="gpu", waiting=1, positions=[RANKED], steering=[STEERING])]
    ),
    "tenants": TenantsReply(
        at=AT,
        pools=[
            PoolTenants(
                pool="gpu",
                capacity={GPU: 64_000},
                tenants=[TenantLine(standing=STANDING, tag=1.0, part_now=0.5)],
            )
        ],
    ),
    "explain": ExplainReply(
        at=AT,
        found=[
            Explanation(
                cluster="prod",
                scope="team-a",
                id="train",
                uid="u1",
                phase="waiting",
                queue="lq",
                position=POSITION,
                ahead=[AheadOf(tenant="b", jobs=2)],
                what_if=WHAT_IF,
                shortfalls=[
                    Shortfall(answer="no-quota", term=GPU, wanted=8000, most=2000, who="gpu"),
                    Shortfall(
                        answer="no-room", term="card-memory", wanted=20_480, most=8192, unit="MiB", who="w"
                    ),
                ],
            )
        ],
    ),
    "order --explain": PaperExplanations(
        at=AT,
        found=[
            Explanation(
                cluster="",
                scope="a",
                id="j",
                uid="u",
                phase="waiting",
                queue="",
                pool="gpu",
                position=POSITION,
                rank=1,
                waiting=2,
                ahead=[AheadOf(tenant="b", jobs=1)],
                standing=STANDING,
                what_if=WHAT_IF,
                reasons=["It waits."],
            )
        ],
    ),
    "pause": ControlSaid(
        pool=None, mode=Mode.PAUSED, by="ada", why="upgrade", stricter=["gpu"], clusters=["prod"]
    ),
    "approve": ClassGranted(job="team-a/train", uid="u1", job_class="urgent", revision=4),
    "policy check": PolicyChecked(file="p.yaml", valid=False, problems=["window: must be 1 to 10000"]),
    "policy diff": PolicyCompared(file="p.yaml", revision=4, changes=["+ window: 16"], notes=["a note"]),
    "policy apply": PolicyPut(revision=5, written=True, notes=[]),
    "nats check": NatsChecked(users=7, faults=[]),
    "nats provision": NatsProvisioned(dry_run=True, changes=["stream event: missing"], refused=[]),
    "policy history": OperatorWord(
        revision=3, since=AT, by="ada", why="upgrade", pool="gpu", mode=Mode.PAUSED
    ),
}


def test_counts_by_name_are_numbers_and_amounts_of_resources_are_quantities() -> None:
    refused = CardRefusals(shape="w", cards=3, refused={"memory": 2})
    assert published(refused) | {"cards": 3, "refused": {"memory": 2}} == published(refused)
    room = published(RoomForecast(free={GPU: 2000}, missing={}, in_turn={}))
    assert room["free"] == {GPU: "2"}


@pytest.mark.parametrize("command", EXAMPLES)
def test_an_answer_is_as_its_schema_says(command: str) -> None:
    schema = output_schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    wanted = {**properties[command], "$defs": schema["$defs"]}
    Draft202012Validator.check_schema(wanted)
    document = json.loads(as_text(published(EXAMPLES[command]), "json"))
    Draft202012Validator(wanted, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(document)


def test_every_reference_of_the_schema_leads_somewhere() -> None:
    schema = output_schema()
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    named = set(re.findall(r'"#/[$]defs/(\w+)"', json.dumps(schema)))
    assert len(named) > 40
    assert named <= definitions.keys()


def test_the_page_of_the_schema_is_up_to_date() -> None:
    assert json.loads(SCHEMA.read_text()) == json.loads(msgspec.json.encode(output_schema())), (
        "`make schemas`"
    )
    assert EXAMPLES.keys() <= ANSWERS.keys()


def test_every_value_has_its_unit() -> None:
    [pool] = json.loads(as_text(published(EXAMPLES["queue"]), "json"))["pools"]
    [ranked] = pool["places"]
    position = ranked["place"]
    assert position["demand"] == {GPU: "8", "memory": "64Gi", "cpu": "500m"}
    assert (position["use"], position["class"], position["submitted"]) == (
        "32500m",
        "urgent",
        "2026-11-21T11:00:00Z",
    )
    assert (position["lifted"]["use"], position["within"][0]["use"]) == ("1500m", "8")
    assert ranked["approved"]["class"] == "urgent"
    assert pool["steering"][0]["adherence"]["idle_unit_seconds"] == {GPU: 90.0}
    [found] = json.loads(as_text(published(EXAMPLES["explain"]), "json"))["found"]
    assert [one["wanted"] for one in found["shortfalls"]] == ["8", 20_480]
    assert found["prospects"]["room"]["holders"] == [{"tenant": "b", "resource": GPU, "amount": "2"}]
    assert found["prospects"]["room"]["free"] == {GPU: "-500m"}
    assert found["prospects"]["moves"][0]["at"] == "2026-11-21T12:00:00Z"


def test_no_word_of_the_wire_is_left() -> None:
    for example in EXAMPLES.values():
        assert '"urgency"' not in as_text(published(example), "json")


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_both_notations_say_the_same(form: Format, capsys: pytest.CaptureFixture[str]) -> None:
    documents = [published(example) for example in EXAMPLES.values()]
    print_stream(documents, form)
    printed = capsys.readouterr().out
    read = (
        [json.loads(line) for line in printed.splitlines()]
        if form == "json"
        else list(yaml.safe_load_all(printed))
    )
    assert json.loads(json.dumps(read, default=str)) == json.loads(msgspec.json.encode(documents))
