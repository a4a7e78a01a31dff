"""The file of a simulated cluster: read whole, and refused with every problem at its line."""

from pathlib import Path

import pytest

from fairlead_sim.config import load_cluster
from fairlead_sim.errors import ConfigError

MISSPELT = """\
version: 1
nodes:
  - {name: a, count: 2, allocatable: {nvidia.com/gpu: 8, cpu: many}}
  - {name: a, cuont: 1, allocatable: {cpu: 4}}
  - name: b
    count: -1
    allocatable: {cpu: 4}
queues:
  - {name: main, strategy: best-efort}
  - name: batch
    lowest_level: 9
    highest_level: 3
acounts: {team-a: main}
accounts:
  team-a: main
  team-b: bach
"""


def problems_of(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_cluster(str(path))
    assert refused.value.what == f"{path} is not a valid cluster"
    return refused.value.problems


def test_every_problem_of_a_file_is_told_at_once_with_its_line_and_what_was_meant(tmp_path: Path) -> None:
    assert problems_of(tmp_path, MISSPELT) == [
        (
            'nodes[0].allocatable.cpu: line 3, column 63: a quantity is a finite number or a string such as "500m" or "64Gi" '
            '(found "many")'
        ),
        "nodes[1].count: line 4, column 5: is missing",
        (
            "nodes[1].cuont: line 4, column 22: is not a key here: did you mean count? Keys are allocatable, count, labels, "
            "name, pool (found 1)"
        ),
        "nodes[2].count: line 6, column 12: must be a whole number from 0 (found -1)",
        'queues[0].strategy: line 9, column 28: must be one of best-effort, strict (found "best-efort")',
        "queues[1]: line 10, column 5: levels 9 to 3 must be a band above its default level 0",
        (
            "acounts: line 13, column 1: is not a key here: did you mean accounts? Keys are accounts, nodes, queues, version "
            '(found {"team-a": "main"})'
        ),
        (
            "accounts.team-b: line 16, column 11: is not a queue here: did you mean batch? Queues are batch, main "
            '(found "bach")'
        ),
    ]


def test_a_cluster_that_does_not_fit_together_is_refused_with_all_problems(tmp_path: Path) -> None:
    twice, elsewhere = problems_of(
        tmp_path, "nodes: []\nqueues: [{name: main}, {name: main}]\naccounts: {team: elsewhere}\n"
    )
    assert "names a queue twice" in twice
    assert "is not a queue here; queues are main" in elsewhere
    text = (
        "nodes: [{name: n, count: -1, allocatable: {cpu: many}}]\n"
        "queues: [{name: main, default_level: 5}]\n"
        "accounts: {}\n"
    )
    for told, part in zip(
        problems_of(tmp_path, text), ("from 0 (found -1)", "quantity", "band above"), strict=True
    ):
        assert part in told
    [problem] = problems_of(tmp_path, "nodes: []\nqueues: []\naccounts: {}\nmisspelled: 1\n")
    assert "is not a key here; keys are accounts, " in problem


def test_an_account_of_a_queue_that_cannot_be_read_is_no_second_problem(tmp_path: Path) -> None:
    [problem] = problems_of(
        tmp_path, "nodes: []\nqueues: [{name: main, strategy: fast}]\naccounts: {a: main}\n"
    )
    assert problem.startswith("queues[0].strategy: line 2, column 33: must be one of")


def test_names_may_not_be_empty(tmp_path: Path) -> None:
    text = (
        "nodes: [{name: n, count: 1, pool: '', allocatable: {}}]\nqueues: [{name: ''}]\naccounts: {'': ''}\n"
    )
    assert [problem.partition(":")[0] for problem in problems_of(tmp_path, text)] == [
        "nodes[0].pool",
        "queues[0].name",
        'accounts.""',
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nodes: {", "is not valid YAML"),
        ("[" * 5_000, "nest more than 100 deep"),
        ("nodes: 2026-02-30", "is a date or time that there is not"),
        ("nodes: 3", "nodes: line 1, column 8: must be a list"),
        ("", "document: is empty"),
        ("[]", "document: must be a mapping of keys and values"),
        ("a: 1\n---\nb: 2\n", "several documents"),
    ],
)
def test_a_cluster_file_that_cannot_be_read_is_an_error_of_its_own(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"odd[.]yaml") as refused:
        load_cluster(str(path))
    assert told in str(refused.value)


def test_a_cluster_file_that_is_no_file_or_no_text_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none[.]yaml cannot be read: No such file or directory$"):
        load_cluster(str(tmp_path / "none.yaml"))
    (tmp_path / "odd.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(
        ConfigError, match=r"odd[.]yaml cannot be read: line 1, column 1: its text must be in UTF-8$"
    ):
        load_cluster(str(tmp_path / "odd.yaml"))
