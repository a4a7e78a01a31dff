"""What frontends say of their queues' settings: whether a level could stop a running job, and which queues park."""

import msgspec
import pytest

from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.frontend.shipped import KUEUE, KUEUE_BLOCKING, KUEUE_PARKING
from fairlead_contracts.messages.state import QueueState
from fairlead_contracts.snapshot.types import SnapshotQueue

NEVER = {"withinClusterQueue": "Never"}


@pytest.mark.parametrize(
    ("preemption", "could"),
    [
        ({}, {}),
        ({"withinClusterQueue": "Never", "reclaimWithinCohort": "Any", "borrowWithinCohort": "Never"}, {}),
        ({"withinClusterQueue": "LowerPriority"}, {"withinClusterQueue": "LowerPriority"}),
        ({"reclaimWithinCohort": "LowerPriority"}, {"reclaimWithinCohort": "LowerPriority"}),
        ({"borrowWithinCohort": "LowerPriority"}, {"borrowWithinCohort": "LowerPriority"}),
        (
            {"withinClusterQueue": "LowerOrNewerEqualPriority"},
            {"withinClusterQueue": "LowerOrNewerEqualPriority"},
        ),
        ({"someNewSetting": "Never"}, {"someNewSetting": "Never"}),
    ],
)
def test_only_settings_that_are_known_to_ignore_levels_are_safe(
    preemption: dict[str, str], could: dict[str, str]
) -> None:
    assert KUEUE.preempting(preemption) == could


def stated_by(capabilities: Capabilities | None, **settings: object) -> QueueState:
    """A queue as it comes over the wire from a frontend that nobody knows by name."""
    queue = {
        "kind": "queue",
        "cluster": "c",
        "name": "q",
        "pool": "p",
        "frontend": "other",
        "epoch": 1,
        "rev": 1,
    } | settings
    if capabilities is not None:
        queue["capabilities"] = msgspec.to_builtins(capabilities)
    return msgspec.convert(queue, QueueState)


def test_a_frontend_says_itself_which_settings_are_harmless() -> None:
    gentle = Capabilities(harmless_settings={"preempt_mode": ("off", "suspend")})
    assert stated_by(gentle, preemption={"preempt_mode": "off"}).preempting == {}
    assert stated_by(gentle, preemption={"preempt_mode": "cancel"}).preempting == {"preempt_mode": "cancel"}
    assert stated_by(gentle, preemption=NEVER).preempting == NEVER, "Kueue's words are not this frontend's"
    assert [gentle.reclaims({"preempt_mode": mode}) for mode in ("off", "suspend", "kill")] == [
        False,
        True,
        False,
    ]
    none = Capabilities(harmless_settings={})
    assert stated_by(none, preemption={"preempt_mode": "off"}).preempting == {"preempt_mode": "off"}


def test_a_frontend_says_itself_which_strategy_parks() -> None:
    parks = Capabilities(parking_strategy="backfill")
    assert stated_by(parks, strategy="backfill").parks
    assert not stated_by(parks, strategy=KUEUE_PARKING).parks
    assert not stated_by(Capabilities(parking_strategy=""), strategy=KUEUE_PARKING).parks


def test_a_frontend_says_itself_which_strategy_blocks() -> None:
    blocks = Capabilities(blocking_strategy="fifo")
    assert stated_by(blocks, strategy="fifo").blocks
    assert not stated_by(blocks, strategy=KUEUE_BLOCKING).blocks
    assert not stated_by(blocks).blocks, "nothing is known of it"
    assert not stated_by(Capabilities(blocking_strategy="")).blocks


@pytest.mark.parametrize("capabilities", [None, Capabilities()])
def test_facts_of_a_release_that_did_not_state_it_are_read_as_kueues(
    capabilities: Capabilities | None,
) -> None:
    older = stated_by(capabilities, preemption=NEVER, strategy=KUEUE_PARKING)
    assert older.parks
    assert older.preempting == {}
    lifts = {"withinClusterQueue": "LowerPriority"}
    assert stated_by(capabilities, preemption=lifts).preempting == lifts
    strict = stated_by(capabilities, strategy=KUEUE_BLOCKING)
    assert strict.blocks
    assert not strict.parks
    assert not older.blocks
    assert not stated_by(capabilities).parks, "nothing is known of it"


def test_a_snapshot_is_read_in_kueues_words() -> None:
    assert SnapshotQueue(name="q", pool="p", preemption=NEVER).preempting == {}
