"""What may stand under a subject."""

import msgspec

from fairlead_contracts import subjects
from fairlead_contracts.messages.decisions import Decision, Keeping, is_decided_at
from fairlead_contracts.messages.state import NodeState, is_stated_at, subject_of

NODE = NodeState(cluster="c1", epoch=1, rev=1, name="n 1.x", allocatable={})
DECISION = Decision(pool="c1/gpu", shard=3, owner="s", epoch=7, turn=1, at=0, basis=None, revision={})


def test_an_object_is_stated_at_its_own_subject_alone() -> None:
    assert is_stated_at(subject_of(NODE), NODE)
    assert not is_stated_at(subjects.state("c1", "node", "n"), NODE)
    for other in ({"cluster": "c2"}, {"name": ""}, {"name": "\ud800"}, {"name": "x" * 2000}):
        assert not is_stated_at(subject_of(NODE), msgspec.structs.replace(NODE, **other))
    assert not is_stated_at(subjects.state("c1", "job", "n 1.x", scope="a"), NODE)


def test_a_decision_stands_at_its_shard_and_behind_its_claim() -> None:
    at = subjects.decision("c1/gpu", 3)
    assert is_decided_at(at, DECISION, 7)
    assert not is_decided_at(at, DECISION, 6), "its claim would be yet to come"
    assert not is_decided_at(subjects.decision("c1/gpu", 4), DECISION, 7)
    assert is_decided_at(at, Keeping(pool="c1/gpu", shard=3), 1)
    assert not is_decided_at(at, Keeping(pool="", shard=3), 1)
