"""Any YAML text gives an order or an error of the file: by seed, from texts of right and nearly right documents.

A seed that fell through is tried again by `python services/cli/tests/test_cli_fuzz.py SEED 1`.
"""

import random
import sys

import msgspec
import pytest
import yaml

from fairlead_cli.errors import InputError
from fairlead_cli.paper.arranging import order
from fairlead_cli.paper.lines import as_lines
from fairlead_cli.paper.reading import parse
from fairlead_cli.paper.results import as_json
from fairlead_cli.policy.files import parse_file
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_testkit.inputs.fuzz_inputs import a_policy, a_snapshot, mangle
from fairlead_testkit.inputs.fuzz_texts import as_yaml, scramble_yaml
from fairlead_testkit.inputs.fuzzing import fuzz, fuzz_and_shrink

TEXTS = 200
"""So many that some are taken in every run: one of eleven is."""
LONG = 60_000


def attempt(rng: random.Random) -> str:
    of_policy = rng.random() < 0.4
    document = a_policy(rng) if of_policy else a_snapshot(rng)
    if rng.random() < 0.3:
        mangle(rng, document)
    text = as_yaml(rng, document)
    if rng.random() < 0.8:
        text = scramble_yaml(rng, text)
    try:
        if of_policy:
            parse_file(text, name="file")
        else:
            # A lone surrogate is nothing that a file could hold.
            check(parse(text.encode(errors="replace"), name="file", is_yaml=True))
    except (InputError, DocumentError) as error:
        assert str(error)  # noqa: PT017 # both outcomes are right here
        return "refused"
    return "taken"


def check(snapshot: Snapshot) -> None:
    """Asserts that what the command prints has a line for each job, as words and as JSON."""
    planned = order(snapshot, levels=True)
    lines = list(as_lines(planned, snapshot))
    told = msgspec.json.decode(b"".join(as_json(planned, snapshot.now)))
    listed = [line["id"] for pool in told["pools"] for line in pool["order"]]
    assert sorted(listed) == sorted(job.id for job in snapshot.jobs)
    assert len(lines) >= len(listed)
    assert [line["rank"] for pool in told["pools"] for line in pool["order"]] == [
        rank for one in planned for rank in range(len(one.pool.positions))
    ]


def test_no_text_falls_through() -> None:
    found = fuzz_and_shrink(attempt, TEXTS)
    assert found["taken"] > TEXTS / 50
    assert found["refused"] > TEXTS / 5


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_none_of_many_texts_falls_through() -> None:
    fuzz(attempt, TEXTS, LONG)


@pytest.mark.parametrize("seed", range(5))
def test_texts_of_the_fuzz_say_what_was_meant(seed: int) -> None:
    """A text that nothing was done to is the document, however it is laid out."""
    rng = random.Random(seed)
    document = a_snapshot(rng)
    assert yaml.safe_load(as_yaml(rng, document)) == document


if __name__ == "__main__":
    print(dict(fuzz(attempt, int(sys.argv[1]), int(sys.argv[2]))))  # noqa: T201 # a command
