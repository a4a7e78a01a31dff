"""Documents that are nearly right, by seed: each gives a defined order or an error that names path and value.

A seed that fell through is tried again by `python libs/policy/tests/snapshot/test_policy_fuzz.py SEED 1`.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import isfinite

import msgspec
import pytest

from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import decode_document, encode_document, read_document
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.order.merging import sort_key
from fairlead_policy.reserve.easy import reserves
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.explained import explain_in_snapshot
from fairlead_policy.snapshot.levels import PLAIN_BAND, plan_snapshot_levels, steering_of
from fairlead_policy.snapshot.ordering import OrderedPool, order_snapshot, policy_of
from fairlead_policy.snapshot.placement import FitVerdict, PlacementWalk, walk
from fairlead_policy.snapshot.reserve import in_reserved_order, reserve_snapshot
from fairlead_testkit.inputs.fuzz_inputs import PlainDocument, a_policy, a_snapshot, mangle, scramble
from fairlead_testkit.inputs.fuzzing import fuzz, fuzz_and_shrink

SHORT = 250
LONG = 1_000_000
TOLD = 0.03
"""The part of what is taken that is explained, placed and promised, too: that costs many times the order."""


def attempt(rng: random.Random) -> str:
    if rng.random() < 0.25:
        return attempt_on(rng, a_policy(rng), decode_document, read_document, check_policy)
    return attempt_on(rng, a_snapshot(rng), decode_snapshot, read_snapshot, check_snapshot)


def attempt_on[D: (PolicyDocument, Snapshot)](
    rng: random.Random,
    document: PlainDocument,
    decode: Callable[[bytes], D],
    read: Callable[[object], D],
    check: Callable[[random.Random, D], None],
) -> str:
    """Reads a document as YAML's parser gives it, or as bytes of JSON; mangled, scrambled or left as it is."""
    kind = rng.random()
    if kind < 0.65:
        mangle(rng, document, as_yaml=kind < 0.2)
    try:
        if kind < 0.2:
            found = read(document)
        else:
            payload = json.dumps(document).encode()
            found = decode(payload if kind < 0.85 else scramble(rng, payload))
        check(rng, found)  # what cards are asked for is read no sooner than with an order
    except DocumentError as error:
        check_refusal(error)
        return "refused"
    return "taken"


NO_JSON = "is not valid JSON"
"""What is no JSON has a line and a column, and nothing of it to quote."""


def check_refusal(error: DocumentError) -> None:
    assert error.problems
    for problem in error.problems:
        assert problem.field
        assert problem.reason
        assert str(problem).startswith(str(problem.unquoted()))
        assert str(problem).isprintable()
        nothing_there = problem.reason == "is missing" or problem.reason.startswith(("is empty", NO_JSON))
        assert nothing_there or "(found " in str(problem)


def check_policy(_: random.Random, document: PolicyDocument) -> None:
    assert decode_document(encode_document(document)) == document
    rules = Rulebook(document, revision=1).pool_rules("east", {"cpu": 4000, "memory": 0})
    assert rules.rate >= 0
    assert len(rules.classes) == len(document.classes)


def check_snapshot(rng: random.Random, snapshot: Snapshot) -> None:
    """Each pool's positions are its jobs, each once, in the order of their keys; levels are such as may be written."""
    for pool in order_snapshot(snapshot):
        waiting = sorted(job.uid for job in snapshot.jobs if job.pool == pool.name)
        assert sorted(position.uid for position in pool.positions) == waiting
        keys = [sort_key(position, pool.rules, snapshot.now) for position in pool.positions]
        assert all(one < other for one, other in pairwise(keys))
        assert all(isfinite(position.tag) and isfinite(position.key) for position in pool.positions)
        steering = steering_of(snapshot, pool.name)
        plan = plan_snapshot_levels(pool, snapshot.jobs, policy_of(snapshot).window, steering)
        assert sorted(plan.levels) == waiting
        assert len(dict(plan.writes)) == len(plan.writes)
        bands = [one.band for how in steering.values() for one in how.class_bands] + [PLAIN_BAND]
        lowest, highest = min(band.default for band in bands), max(band.highest for band in bands)
        assert all(lowest <= level <= highest for _, level in plan.writes)
    if rng.random() < 0.1:
        assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
    if rng.random() < TOLD:
        check_told(snapshot)


def check_told(snapshot: Snapshot) -> None:
    """Every job is explained, stands where the order has it, and is told of nodes and promises where they count."""
    pools = order_snapshot(snapshot)
    ranks = {
        position.uid: (pool.name, rank) for pool in pools for rank, position in enumerate(pool.positions)
    }
    for job in snapshot.jobs:
        [one] = [found for found in explain_in_snapshot(snapshot, job.id) if found.uid == job.uid]
        assert (one.pool, one.rank) == ranks[job.uid]
        assert sum(line.jobs for line in one.ahead) == one.rank
        assert ranks[job.uid][1] < (one.waiting or 0)
        assert all(reason.strip() for reason in one.reasons)
        assert all(isfinite(number) for number in numbers_in(msgspec.to_builtins(one)))
    walked, first = check_fit(snapshot, pools), list[str]()
    for pool in pools:
        found = reserve_snapshot(snapshot, pool, walked.never)
        assert (found is not None) == reserves(snapshot.policy, pool.name)
        if found is not None:
            reserved = [position.uid for position in in_reserved_order(pool, found).positions]
            assert sorted(reserved) == sorted(position.uid for position in pool.positions)
            first += [found.head] if found.head else []
    assert set(first) <= ranks.keys() - walked.never


def check_fit(snapshot: Snapshot, pools: Sequence[OrderedPool]) -> PlacementWalk:
    """Each job has an answer, and a reason where it has no position."""
    strategy = snapshot.policy.fit.strategy
    order = {pool.name: [position.uid for position in pool.positions] for pool in pools}
    found = walk(snapshot, order, CardStrategy.SPREAD if strategy == "none" else CardStrategy(strategy))
    assert found.jobs.keys() == {job.uid for job in snapshot.jobs}
    for fit in found.jobs.values():
        assert fit.reasons or fit.answer in {FitVerdict.PLACED, FitVerdict.UNKNOWN}
        assert fit.nodes or fit.answer is not FitVerdict.PLACED
    return found


def numbers_in(found: object) -> Iterator[float]:
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        for part in found:
            yield from numbers_in(part)
    elif isinstance(found, float):
        yield found


def test_nothing_that_is_read_falls_through() -> None:
    found = fuzz_and_shrink(attempt, SHORT)
    # Both ends of the generator are alive: most is nearly right.
    assert found["taken"] > SHORT / 8
    assert found["refused"] > SHORT / 8


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_nothing_of_a_million_inputs_falls_through() -> None:
    workers = os.cpu_count() or 1
    part = -(-LONG // workers)
    running = [
        subprocess.Popen(
            [sys.executable, __file__, str(SHORT + worker * part), str(part)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for worker in range(workers)
    ]
    for process in running:
        said, _ = process.communicate()
        assert process.returncode == 0, said


if __name__ == "__main__":
    print(dict(fuzz(attempt, int(sys.argv[1]), int(sys.argv[2]))))  # noqa: T201 # a command
