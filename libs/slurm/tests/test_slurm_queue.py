"""Reading of squeue's output, whatever users wrote into it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.instants import SECOND
from fairlead_slurm import cluster, quantities
from fairlead_slurm.errors import UnreadableError
from fairlead_slurm.queue import _FIELDS, QueueFormat, QueueReader, QueueReading

HOSTILE = [
    "$(touch /tmp/owned)",
    "`id`; rm -rf ~",
    "two\nlines",
    "'single' \"double\" \\ back",
    "\x1e99\x1f\x1f|,",
    "日本語 ünïcode 🙂",
    "%i%j",
]
PLAIN = {
    "jobarrayid": "12_3",
    "jobid": "12",
    "state": "PENDING",
    "prioritylong": "4711",
    "nice": "-5",
    "account": "vision",
    "username": "games",
    "partition": "gpu,batch",
    "qos": "normal",
    "submittime": "1700000000",
    "starttime": "N/A",
    "endtime": "NONE",
    "eligibletime": "1700000000",
    "timelimit": "1-02:03:04",
    "restartcnt": "2",
    "numnodes": "2",
    "tres-alloc": "cpu=2,mem=1.50G,node=2,billing=2,gres/gpu=16",
    "numtasks": "2",
    "tres-per-node": "gres:gpu:8",
    "tres-per-job": "N/A",
    "tres-per-task": "N/A",
    "cpus-per-tres": "N/A",
    "oversubscribe": "OK",
    "dependency": "(null)",
    "reqnodes": "",
    "licenses": "a:2",
    "reservation": "(null)",
    "reason": "Resources",
    "comment": "(null)",
    "name": "train",
}


def read(form: QueueFormat, *rows: dict[str, str]) -> QueueReading:
    """The first reading of these rows."""
    return QueueReader().read(printed(form, *rows).encode(), form)


def printed(form: QueueFormat, *rows: dict[str, str]) -> str:
    """The rows as squeue prints them, each field with the format's mark behind it, each row on a line."""
    suffixes = dict(part.split(":0", 1) for part in form.arguments[-1].split(","))
    return "".join("".join(f"{row[name]}{suffixes[name]}" for name in _FIELDS) + "\n" for row in rows)


def test_a_line_becomes_a_job() -> None:
    form = QueueFormat()
    [job] = read(form, PLAIN).jobs
    assert (job.array, job.task) == (12, 3)
    assert (job.id, job.number, job.partitions, job.nice) == ("12_3", 12, ("gpu", "batch"), -5)
    assert job.resources == {
        "cpu": 2000, "mem": 3 * 2**29, "node": 2000, "billing": 2000, "gres/gpu": 16_000,
    }  # fmt: skip
    assert job.time_limit == (((24 + 2) * 60 + 3) * 60 + 4) * 10**6
    assert (job.started, job.dependency, job.comment) == (None, "", "")


def test_parts_that_start_together_are_one_job() -> None:
    parts = [
        PLAIN | {"jobarrayid": f"11+{place}", "jobid": str(11 + place), "prioritylong": str(90 - place)}
        for place in range(3)
    ]
    found = read(
        QueueFormat(), PLAIN, parts[2], parts[0], parts[1] | {"dependency": "afterok:7(unfulfilled)"}
    )
    assert found.unreadable == 0
    [plain, whole] = found.jobs
    assert (whole.id, whole.number, [one.id for one in whole.parts], whole.nodes) == (
        "11",
        11,
        ["11", "12", "13"],
        6,
    )
    assert (whole.priority, whole.dependency) == (88, "afterok:7(unfulfilled)")
    assert whole.resources == {name: 3 * amount for name, amount in plain.resources.items()}
    assert read(QueueFormat(), parts[1]).jobs == []  # the first one is forgotten already


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_no_name_or_comment_can_add_or_hide_a_job(names: list[str]) -> None:
    form = QueueFormat()
    rows = [
        PLAIN | {"jobarrayid": str(number), "name": name, "comment": name, "account": name}
        for number, name in enumerate([*names, *HOSTILE], start=1)
    ]
    found = read(form, *rows)
    assert found.unreadable == 0
    assert [job.id for job in found.jobs] == [row["jobarrayid"] for row in rows]
    assert [job.name for job in found.jobs] == [row["name"][:256] for row in rows]


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        ({"tres-per-node": "gres:gpu:h100:2"}, 4000),
        ({"tres-per-node": "gres:gpu"}, 2000),
        ({"tres-per-node": "N/A", "tres-per-job": "gres:gpu:3"}, 3000),
        ({"tres-per-node": "N/A", "tres-per-task": "gres:gpu:1", "numtasks": "5"}, 5000),
    ],
)
def test_gpus_that_accounting_does_not_track_count_as_they_were_asked_for(
    asked: dict[str, str], gpus: int
) -> None:
    [job] = read(QueueFormat(), PLAIN | {"tres-alloc": "cpu=2,mem=1G"} | asked).jobs
    assert job.resources["gres/gpu"] == gpus
    assert job.resources["cpu"] == 2000


def test_cpus_that_come_with_gpus_count_while_the_job_waits() -> None:
    """Accounting says of it that it asks for as many CPUs as it has tasks."""
    rows = [
        PLAIN | {"jobarrayid": name, "cpus-per-tres": per}
        for name, per in (("1", "gres:gpu:4"), ("2", "N/A"))
    ]
    assert [job.resources["cpu"] for job in read(QueueFormat(), *rows).jobs] == [64_000, 2000]


def test_a_job_that_shares_no_node_is_told() -> None:
    rows = [
        PLAIN | {"jobarrayid": name, "oversubscribe": word}
        for name, word in (("1", "NO"), ("2", "USER"), ("3", "OK"))
    ]
    assert [job.whole_nodes for job in read(QueueFormat(), *rows).jobs] == [True, False, False]


def test_a_line_that_cannot_be_read_keeps_no_other_back() -> None:
    form = QueueFormat()
    found = read(form, PLAIN | {"submittime": "soon"}, PLAIN | {"tres-alloc": "cpu:2"}, PLAIN)
    assert (len(found.jobs), found.unreadable) == (1, 2)


TEXTS = st.sampled_from(["", "a", "\x1d", "\x1f", "a\x1db", *HOSTILE])


@given(st.lists(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, st.integers(0, 2)), max_size=4), max_size=5))
def test_a_later_reading_says_what_a_first_one_would(readings: list[list[tuple[str, str, str, int]]]) -> None:
    reader = QueueReader()
    for jobs in readings:
        form = QueueFormat()
        rows = [
            PLAIN
            | {
                "jobarrayid": str(at),
                "account": one,
                "comment": two,
                "name": three,
                "prioritylong": str(priority),
            }
            for at, (one, two, three, priority) in enumerate(jobs)
        ]
        found = reader.read(printed(form, *rows).encode(), form)
        told = [(job.id, job.priority) for job in found.jobs]
        assert told == [(job.id, job.priority) for job in read(form, *rows).jobs]
        if not any("\x1d" in text for job in jobs for text in job[:3]):
            assert found == read(form, *rows)


def test_what_did_not_change_is_not_read_again() -> None:
    reader, forms = QueueReader(), [QueueFormat() for _ in range(2)]
    other = PLAIN | {"jobarrayid": "13"}
    [_, before] = reader.read(printed(forms[0], PLAIN, other).encode(), forms[0]).jobs
    changed = PLAIN | {"prioritylong": "1"}
    [first, second] = reader.read(printed(forms[1], changed, other).encode(), forms[1]).jobs
    assert (first.priority, second) == (1, before)
    assert second is before


def test_separators_differ_from_reading_to_reading() -> None:
    assert QueueFormat().arguments != QueueFormat().arguments


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("", {}),
        ("cpu=1", {"cpu": 1000}),
        ("mem=62.50G", {"mem": 125 * 2**29}),
        ("mem=100M,gres/gpu:h100=8", {"mem": 100 * 2**20, "gres/gpu:h100": 8000}),
        ("cpu=1K", {"cpu": 1_024_000}),
    ],
)
def test_amounts(text: str, amounts: dict[str, int]) -> None:
    assert quantities.tres(text) == amounts


@pytest.mark.parametrize("text", ["cpu", "cpu=", "cpu=x", "cpu=1,,mem=2M"])
def test_amounts_that_are_none(text: str) -> None:
    with pytest.raises(UnreadableError):
        quantities.tres(text)


def test_settings_give_the_sum_of_the_weights() -> None:
    found = cluster.settings(
        "Configuration data as of 2026\nClusterName             = lab\nPriorityType            = priority/multifactor\n"
        "PriorityWeightAge       = 1000\nPriorityWeightFairShare = 2000\nPriorityWeightQOS       = 0\n"
        "PriorityWeightTRES      = cpu=10,gres/gpu=300\nSLURM_VERSION           = 22.05.8\n"
    )
    assert (found.cluster, found.version, found.own_priority) == ("lab", "22.05.8", 3310)
    assert found.weights == {"Age": 1000, "FairShare": 2000, "TRES/cpu": 10, "TRES/gres/gpu": 300}


@pytest.mark.parametrize(("text", "seconds"), [("MinJobAge = 900 sec\n", 900), ("", 300)])
def test_how_long_ended_jobs_are_kept_is_read_in_seconds(text: str, seconds: int) -> None:
    assert cluster.settings(f"ClusterName = lab\n{text}").ended_kept == seconds * SECOND


def test_gpus_that_accounting_does_not_track_are_the_nodes_all_the_same() -> None:
    [node] = cluster.nodes(
        "NodeName=n1 Partitions=gpu Gres=gpu:h100:4(S:0-1),gpu:a100:2 State=IDLE CfgTRES=cpu=16,mem=1G"
    )
    assert node.resources == {
        "cpu": 16_000, "mem": 2**30, "gres/gpu": 6000, "gres/gpu:h100": 4000, "gres/gpu:a100": 2000,
    }  # fmt: skip
    [tracked] = cluster.nodes("NodeName=n1 Gres=gpu:8 State=IDLE CfgTRES=cpu=1,gres/gpu=7")
    assert tracked.resources["gres/gpu"] == 7000


def test_nodes_that_are_switched_off_to_save_power_take_jobs() -> None:
    """Slurm switches them on for a job."""
    taking = ("IDLE+CLOUD+POWERED_DOWN", "IDLE+POWERING_UP", "MIXED+POWERED_DOWN")
    refusing = ("DOWN+POWERED_DOWN", "IDLE+DRAIN+POWERED_DOWN", "IDLE+POWERING_DOWN")
    found = cluster.nodes(
        "\n".join(f"NodeName=n1 State={state} CfgTRES=cpu=16" for state in taking + refusing)
    )
    assert [node.usable for node in found] == [True] * len(taking) + [False] * len(refusing)


def test_nodes_that_take_no_jobs_are_told() -> None:
    text = "\n".join(
        f"NodeName=n{number} Partitions=gpu,rush State={state} Reason=Not responding [root@2026] CfgTRES=cpu=16,gres/gpu=8"
        for number, state in enumerate(["IDLE", "MIXED", "IDLE+DRAIN", "DOWN*", "ALLOCATED", "FUTURE"])
    )
    found = cluster.nodes(text)
    assert [node.usable for node in found] == [True, True, False, False, True, False]
    assert found[0].resources == {"cpu": 16_000, "gres/gpu": 8000}
