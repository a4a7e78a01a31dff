"""`fairlead order FILE --explain JOB`: what the words and the data say of a job on paper."""

import json
import subprocess

from fairlead_testkit.processes.command import fairlead

GPU = "nvidia.com/gpu"
NOW = 1_760_000_000
SNAPSHOT: dict[str, object] = {
    "now": NOW,
    "policy": {"aging": {"entitlement_per_day": 7.2, "cap_days": 0.083333333333}},
    "pools": [{"name": "gpu", "capacity": {"cpu": "512", GPU: 64}}],
    "tenants": [{"name": "team-a", "weight": 3}, {"name": "team-b"}, {"name": "team-c"}],
    "running": [
        {"id": "r1", "tenant": "team-a", "demand": {GPU: 32}},
        {"id": "r2", "tenant": "team-b", "demand": {GPU: 20}},
        {"id": "r3", "tenant": "team-c", "demand": {GPU: 10}},
    ],
    "jobs": [
        {"id": "train", "tenant": "team-b", "submitted": NOW - 1800, "demand": {GPU: 4}},
        {"id": "first", "tenant": "team-c", "submitted": NOW - 1800, "demand": {GPU: 8}},
        {"id": "second", "tenant": "team-a", "submitted": NOW - 1800, "demand": {GPU: 1}},
        {"id": "old", "tenant": "team-b", "class": "approved", "submitted": NOW - 9000, "demand": {GPU: 2}},
    ],
}


def explain(
    job: str, *words: str, snapshot: dict[str, object] = SNAPSHOT, whole: bool = True
) -> subprocess.CompletedProcess[str]:
    asked = ["order", "-", "--explain", job, *(["-v"] if whole else []), *words]
    return fairlead(*asked, given=json.dumps(snapshot))


def test_words_say_what_the_share_is_made_of_who_is_before_it_and_what_would_move_it() -> None:
    ended = explain("train")
    assert ended.returncode == 0, ended.stderr
    for sentence in (
        "team-b/train",
        "Waiting, 4th of 4: needs 4 gpu, 2 free; team-b is over its share.",
        "before it   1 of team-a, 1 of team-b, 1 of team-c",
        "gpu: 20 running and 2 for 1 job of its own before it are 34.4 % of the pool, 171.9 % of its part (weight 1 entitles it to 20.0 %).",
        # 32 of 64 over three fifths is 83.3 %; 22 of 64 over a fifth is 171.9 %.
        "Before it stands second of team-a: its tenant comes to 83.3 % of its part, this one's to 171.9 %.",
        "Before it stands first of team-c: its tenant comes to 78.1 % of its part, this one's to 171.9 %.",
        # 22 - 11 = 11 of 64 is 85.9 %, above 83.3 %: 12 have to end; team-c's 10 of 64 ask for 12 and the tie by uid.
        "It goes before second of team-a once its own tenant gives back 12 of its 20 gpu.",
        "As approved it would be number 2: an operator can grant that with `fairlead approve team-b/train --class approved`.",
        "As urgent it would be number 1: an operator can grant that with `fairlead approve team-b/train --class urgent`.",
        (
            "It cannot start yet: it needs 2 gpu more than are free "
            "(team-a holds 32 gpu, team-b holds 20 gpu, team-c holds 10 gpu)."
        ),
        "The jobs before it start first: after that, 13 gpu have to be given back before it can start.",
    ):
        assert sentence in ended.stdout


def test_the_same_as_data() -> None:
    ended = explain("train", "-o", "json")
    [found] = json.loads(ended.stdout)["found"]
    assert (found["rank"], found["waiting"], found["place"]["id"]) == (3, 4, "train")
    what_if = found["prospects"]
    assert what_if["makeup"]["running"] == {GPU: "20"}
    assert [one["term"] for one in what_if["nearest"]] == ["share", "share", "class"]
    ends = [move for move in what_if["moves"] if move["cause"] == "ends"]
    assert [(move["passed_id"], move["amounts"]) for move in ends] == [
        ("second", {GPU: "11334m"}),
        ("first", {GPU: "12001m"}),
    ]
    assert what_if["room"]["missing"] == {GPU: "2"}
    assert what_if["room"]["in_turn"] == {GPU: "13"}


def test_a_job_that_does_not_wait_is_said() -> None:
    ended = explain("nobody")
    assert ended.returncode == 1
    assert "no job 'nobody' waits in the snapshot" in ended.stderr
    assert ended.stdout == ""


def test_a_job_is_found_as_queue_names_it() -> None:
    assert explain("team-b/train").stdout == explain("train").stdout
    assert explain("team-a/train").returncode == 1


def test_jobs_of_one_id_are_found_by_it_and_told_apart_by_their_scopes() -> None:
    """`fairlead snapshot` writes the scope before an id that several have."""
    waiting = [
        {"id": f"{team}/same", "uid": team, "tenant": team, "submitted": NOW - 900, "demand": {GPU: 4}}
        for team in ("team-b", "team-c")
    ]
    twins = SNAPSHOT | {"jobs": waiting}
    both = explain("same", snapshot=twins)
    assert both.returncode == 0, both.stderr
    named = [line for line in both.stdout.splitlines() if line.startswith("team-")]
    assert [line.split()[0].rstrip(",") for line in named] == ["team-b/same", "team-c/same"]
    alone = explain("team-c/same", "-o", "json", snapshot=twins)
    [found] = json.loads(alone.stdout)["found"]
    assert (found["scope"], found["id"]) == ("team-c", "same")
    assert "`fairlead approve team-b/same --class urgent`" in explain("team-b/same", snapshot=twins).stdout


def test_what_no_node_has_is_said_where_the_policy_looks_at_nodes() -> None:
    policy = {"aging": {"entitlement_per_day": 7.2}, "fit": {"strategy": "binpack"}}
    nodes = [{"name": "n1", "allocatable": {GPU: 2}}]
    ended = explain("train", snapshot=SNAPSHOT | {"policy": policy, "nodes": nodes})
    assert ended.returncode == 0, ended.stderr
    assert "On the nodes:" in ended.stdout
    [fit] = json.loads(
        explain("train", "-o", "json", snapshot=SNAPSHOT | {"policy": policy, "nodes": nodes}).stdout
    )["fits"].values()
    assert fit["answer"] == "never"


RESERVE: dict[str, object] = SNAPSHOT | {
    "policy": {"mode": "reserve", "reserve": {"reaction_seconds": 10, "grace_seconds": 30}},
    "running": [{"id": "r1", "tenant": "team-c", "demand": {GPU: 48}, "ends": NOW + 7200}],
    "jobs": [
        {"id": "big", "tenant": "team-a", "submitted": NOW - 900, "demand": {GPU: 64}, "runtime_limit": 60},
        {"id": "long", "tenant": "team-b", "submitted": NOW - 800, "demand": {GPU: 16}},
        {"id": "small", "tenant": "team-b", "submitted": NOW - 700, "demand": {GPU: 16}, "runtime_limit": 60},
    ],
}


def test_the_two_nearest_changes_that_would_move_it_are_told_unasked() -> None:
    brief = explain("train", whole=False).stdout
    assert "It goes before second of team-a once its own tenant gives back 12 of its 20 gpu." in brief
    assert (
        "As approved it would be number 2: an operator can grant that with `fairlead approve team-b/train --class"
        in brief
    )
    assert " more with -v" in brief


def test_a_policy_is_told_from_a_snapshot() -> None:
    ended = explain("train", snapshot={"tenants": [{"name": "a", "weight": 1}], "classes": ["normal"]})
    assert ended.returncode != 0
    assert "looks like a policy, not a snapshot" in ended.stderr
    assert "fairlead policy check" in ended.stderr


def test_reserve_mode_has_its_say_in_the_number_and_in_the_reasons() -> None:
    ended = explain("small", snapshot=RESERVE)
    assert ended.returncode == 0, ended.stderr
    assert "team-b/small\nWaiting, 1st of 3: " in ended.stdout
    assert "It passes big: it ends before that one's start, or leaves room for it." in ended.stdout
    assert (
        "In this order nobody stands before it. By fairness alone it is number 3; what is said below of others, "
        "and what would move it, is of that order."
    ) in ended.stdout
    [head] = json.loads(explain("big", "-o", "json", snapshot=RESERVE).stdout)["found"]
    assert (head["rank"], head["ahead"]) == (1, [{"tenant": "team-b", "jobs": 1}])
    assert any("starts by 2025-10-09 10:53:50 UTC at the latest" in reason for reason in head["reasons"])


def test_who_stands_before_a_job_in_the_order_that_is_printed_is_said_where_its_number_is_the_same() -> None:
    late = {"id": "late", "tenant": "team-b", "submitted": NOW - 600, "demand": {GPU: 16}}
    jobs = [one for one in RESERVE["jobs"] if one["id"] != "long"]  # type: ignore[attr-defined] # a list of jobs
    found = explain("late", snapshot=RESERVE | {"jobs": [*jobs, late]}).stdout
    assert "team-b/late\nWaiting, 3rd of 3: " in found
    assert (
        "In this order, directly before it stands big of team-a, then small of team-b. By fairness alone it is number 3;"
    ) in found
    first = explain("first", snapshot=SNAPSHOT | {"policy": {"mode": "reserve"}, "running": []}).stdout
    assert "fairness alone" not in first, "all fit: it is the same order"


def test_why_no_start_can_be_promised_is_said_of_a_job_too() -> None:
    jobs = [{"id": name, "tenant": "team-a", "submitted": NOW, "queue": name} for name in ("x", "y")]
    ended = explain("x", snapshot=RESERVE | {"jobs": [one | {"demand": {GPU: 1}} for one in jobs]})
    assert "No start can be promised in pool gpu: its jobs wait in 2 queues" in ended.stdout
