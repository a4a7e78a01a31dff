"""Answers on shares and on room where a plain word would be false."""

import msgspec
import pytest

from fairlead_cli.client.explained import explain_text, headline
from fairlead_cli.client.phrases import demand
from fairlead_cli.client.tables import queue_view, tenants_view
from fairlead_cli.console import Screen
from fairlead_contracts.messages.explanations import RoomForecast, WhatIf
from fairlead_testkit.inputs.builders import (
    a_pool_queue,
    a_pool_tenants,
    a_position,
    a_queue_reply,
    a_ranked_position,
    a_tenant_line,
    a_tenant_share,
    a_tenants_reply,
    an_explain_reply,
    an_explanation,
)

GPU = "nvidia.com/gpu"


def test_shares_over_weights_are_no_parts_of_the_pool() -> None:
    """The weight is the "entitlement" with `divide_by: weight`: 300 % of a pool is nobody's part."""
    heavy = a_tenant_share(weight=3.0, entitled=3.0)
    pool = a_pool_tenants(tenants=[a_tenant_line(standing=heavy, tag=0.25)], divide_by="weight")
    text = tenants_view(a_tenants_reply(pools=[pool]))
    assert "over its weight" in text
    queue = a_pool_queue(positions=[a_ranked_position(entitled=3.0)], divide_by="weight")
    text += queue_view(a_queue_reply(pools=[queue]), Screen(160))
    found = an_explanation(standing=heavy, divide_by="weight", rank=0, waiting=1, position=a_position())
    text += explain_text(an_explain_reply(found=[found]))
    for false in ("300.0%", "entitled", "of its part", "under its share"):
        assert false not in text
    assert "weight 3, dominant share" in text


@pytest.mark.parametrize(
    ("divide_by", "said"),
    [
        (msgspec.UNSET, "share then, entitled: of the tenant at the top of its tree"),
        ("weight", "share then, weight: of the tenant at the top of its tree"),
    ],
)
def test_in_a_tree_the_queue_says_whose_entitlement_it_shows(
    divide_by: str | msgspec.UnsetType, said: str
) -> None:
    below = a_pool_queue(positions=[a_ranked_position(position=a_position(top="org-a"))], divide_by=divide_by)
    assert said in queue_view(a_queue_reply(pools=[below]), Screen(160))
    flat = a_pool_queue(divide_by=divide_by)
    assert "at the top of its tree" not in queue_view(a_queue_reply(pools=[flat]), Screen(160))


def test_parts_of_many_are_told_as_people_count() -> None:
    assert (
        demand({"nvidia.com/gpumem": 19_660_800, GPU: 200, "cpu": 1500}) == "gpu=200m gpumem=19660.8 cpu=1.5"
    )


def test_of_two_resources_it_is_said_how_much_of_which_is_free() -> None:
    room = RoomForecast(free={GPU: 0, "cpu": 4000}, missing={GPU: 8000, "cpu": 1000})
    waits = an_explanation(
        rank=5, waiting=40, position=a_position(demand={GPU: 8000, "cpu": 5000}), what_if=WhatIf(room=room)
    )
    assert headline(waits) == (
        "Waiting, 6th of 40: needs 8 gpu and 5 cpu, of which no gpu and 4 cpu are free."
    )


def test_what_no_node_has_room_for_does_not_fit_now() -> None:
    what_if = WhatIf(room=RoomForecast(free={GPU: 9000}))
    waits = an_explanation(
        rank=5, waiting=40, position=a_position(), what_if=what_if, no_room=["no card has 16000 MiB"]
    )
    assert (
        headline(waits)
        == "Waiting, 6th of 40: its pool has quota for it, but its nodes or cards have no room."
    )


def test_children_stand_indented_below_their_parent_and_siblings_keep_their_order() -> None:
    parents = {"team-2": "org-a", "org-b": None, "org-a": None, "team-1": "org-a", "squad": "team-1"}
    standings = [a_tenant_share(tenant=name, parent=parent) for name, parent in parents.items()]
    lines = [a_tenant_line(standing=one) for one in standings]
    pool = a_pool_tenants(tenants=lines)
    for columns in (60, 160):
        shown = tenants_view(a_tenants_reply(pools=[pool]), Screen(columns)).splitlines()[3:]
        names = [line[: len(line) - len(line.lstrip())] + line.split()[0] for line in shown]
        assert names == ["org-b", "org-a", "  team-2", "  team-1", "    squad"]
