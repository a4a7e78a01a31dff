"""A scorer's input is a log: replayed in another process, it gives the same decisions to the byte."""

import itertools
import random
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.messages.decisions import Basis, KeptPast, StatedPastUse
from fairlead_contracts.messages.state import STATE, Phase, State, subject_of
from fairlead_contracts.policyfile.document import Aging, Hierarchy, PolicyDocument, Pool, Tenant
from fairlead_scorer.decide.decision import decide
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.past import FinishedRun
from fairlead_testkit.inputs.builders import NOW, a_decision, a_demand, a_job, a_mark, a_pool, a_queue
from fairlead_testkit.processes.fresh_interpreter import printed_under_other_seeds
from fairlead_testkit.timing.in_hand import all_steps

HOUR = 3_600_000_000
TEAMS = [f"team-{number}" for number in range(12)]
DOCUMENTS = [
    PolicyDocument(
        tenants=[Tenant(name=team, weight=1.0 + at % 3) for at, team in enumerate(TEAMS)], shards=2
    ),
    PolicyDocument(
        tenants=[Tenant(name="org"), *(Tenant(name=team, parent="org") for team in TEAMS[:6])],
        pools=[Pool(name="all", members=["c1/gpu", "c2/gpu"])],
        unlisted_weight=1.0,
        half_life_hours=2.0,
        shards=3,
    ),
    PolicyDocument(
        tenants=[Tenant(name="org"), *(Tenant(name=team, parent="org") for team in TEAMS[3:])],
        hierarchy=Hierarchy(mode="hdrf"),
        aging=Aging(entitlement_per_day=12.0, cap_days=1 / 24),
        unlisted_weight=0.5,
        shards=1,
    ),
]


class PolicyAdopted(msgspec.Struct, frozen=True, tag=True):
    """A policy is in force from now on."""

    document: PolicyDocument
    revision: int


class StateLearned(msgspec.Struct, frozen=True, tag=True):
    """State messages by subject, as they travel; empty where the object is gone."""

    messages: dict[str, bytes]


class RunsHeard(msgspec.Struct, frozen=True, tag=True):
    """Events told of runs that are over."""

    runs: list[FinishedRun]


class UseFollowed(msgspec.Struct, frozen=True, tag=True):
    """Other owners of shards stated past use."""

    statements: list[StatedPastUse]
    now: int


class ShardsDecided(msgspec.Struct, frozen=True, tag=True):
    """Every shard was decided at an instant."""

    now: int


type ScorerInput = PolicyAdopted | StateLearned | RunsHeard | UseFollowed | ShardsDecided
LOG = msgspec.msgpack.Decoder(list[ScorerInput])


def replay(log: bytes) -> Iterator[bytes]:
    """The decisions, as they are published."""
    cache = ClusterCache()
    for number, entry in enumerate(LOG.decode(log)):
        match entry:
            case PolicyAdopted():
                all_steps(cache.adopting(entry.document, entry.revision))
            case StateLearned():
                read = {
                    subject: STATE.decode(said) if said else None for subject, said in entry.messages.items()
                }
                all_steps(cache.learning(read))
            case RunsHeard():
                cache.hear(entry.runs)
            case UseFollowed():
                cache.follow(entry.statements, lambda _pool, shard: shard == 0, entry.now)
            case ShardsDecided():
                yield from decisions(cache, entry.now, number)


def decisions(cache: ClusterCache, now: int, turn: int) -> Iterator[bytes]:
    for name, pool in sorted(cache.pools.items()):
        for shard in range(pool.shards):
            content = decide(pool, shard, now)
            decision = a_decision(
                pool=name, shard=shard, owner="scorer-1", epoch=1, turn=turn, at=now, basis=content.basis,
                revision=dict.fromkeys(sorted(pool.shape.clusters), turn), queue_heads=content.queue_heads,
                standings=content.standings, kept=content.kept,
            )  # fmt: skip
            yield to_packed(decision)


def some_job(dice: random.Random, now: int) -> State:
    number = dice.randrange(60)
    phase = dice.choice([Phase.WAITING, Phase.WAITING, Phase.RUNNING, Phase.ENDED, Phase.HELD])
    begun = now - dice.randrange(HOUR)
    return a_job(
        f"j{number}", cluster=dice.choice(["c1", "c2"]), scope=dice.choice([*TEAMS, "stranger"]), uid=f"u{number}",
        phase=phase, gpu=dice.choice([0.5, 1, 4]), submitted=begun - dice.randrange(HOUR), rev=now,
        started=begun if phase in (Phase.RUNNING, Phase.ENDED) else None,
        ended=now if phase is Phase.ENDED else None,
    )  # fmt: skip


def some_run(dice: random.Random, now: int) -> FinishedRun:
    """A run of a job that nobody states any more."""
    ended = now - dice.randrange(HOUR)
    return FinishedRun(
        cluster=dice.choice(["c1", "c2"]), scope=dice.choice(TEAMS), uid=f"gone-{dice.randrange(20)}", queue="main",
        started=ended - dice.randrange(1, HOUR), ended=ended, demand=a_demand(gpu=dice.choice([1, 4])),
    )  # fmt: skip


def some_statement(dice: random.Random, revision: int, now: int) -> StatedPastUse:
    """A statement of past use, under the policy that is in force or another one."""
    used = {team: {"nvidia.com/gpu": str(dice.randrange(10**12))} for team in dice.sample(TEAMS, 3)}
    return StatedPastUse(
        pool="all", shard=dice.randrange(3), basis=Basis(policy=dice.choice([revision, revision - 1]), capacity={}),
        kept=KeptPast(at=now - dice.randrange(HOUR), half_life=2 * HOUR, tenants=used),
    )  # fmt: skip


def recorded(seed: int, length: int) -> bytes:
    """A log of what two clusters stated, what policies said meanwhile, and what was told of the past."""
    dice, now = random.Random(seed), NOW
    # Jobs ask for all resources in this ratio: with H-DRF these are used up together.
    capacity = a_demand(cpu=64, memory_gib=256, gpu=16)
    ground: list[State] = [
        state
        for cluster in ("c1", "c2")
        for state in (
            a_pool(cluster=cluster, capacity=capacity),
            a_queue(cluster=cluster),
            a_mark(cluster=cluster),
        )
    ]
    log: list[ScorerInput] = [
        PolicyAdopted(DOCUMENTS[0], 1),
        StateLearned({subject_of(one): to_packed(one) for one in ground}),
    ]
    in_force, documents = 1, itertools.cycle(DOCUMENTS[1:] + DOCUMENTS[:1])  # each holds for a while
    for revision in range(2, length):
        now += dice.randrange(HOUR // 6)
        jobs = [some_job(dice, now) for _ in range(dice.randint(1, 9))]
        gone = dice.random() < 0.1
        log.append(StateLearned({subject_of(job): b"" if gone else to_packed(job) for job in jobs}))
        if dice.random() < 0.2:
            in_force = revision
            log.append(PolicyAdopted(next(documents), revision))
        log.append(RunsHeard([some_run(dice, now) for _ in range(dice.randint(0, 3))]))
        statements = [some_statement(dice, in_force, now) for _ in range(dice.randint(0, 2))]
        log.append(UseFollowed(statements, now))
        log.append(ShardsDecided(now))
    return msgspec.msgpack.encode(log)


def digest(log: bytes) -> str:
    found, positions = sha256(), 0
    for decision in replay(log):
        found.update(decision)
        positions += len(decision)
    assert positions, "nothing was decided"
    return found.hexdigest()


@pytest.mark.integration
def test_a_log_of_state_and_policies_replays_to_the_same_decisions_in_another_process(tmp_path: Path) -> None:
    log = recorded(seed=7, length=60)
    (tmp_path / "log").write_bytes(log)
    assert printed_under_other_seeds(__file__, tmp_path / "log") == [digest(log)] * 2


if __name__ == "__main__":
    print(digest(Path(sys.argv[1]).read_bytes()))  # noqa: T201 # read by the test
