import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.local.up import an_account
from fairlead_contracts.policyfile.document import Match, PolicyDocument, Tenant
from fairlead_testkit.processes.command import LocalInstance, fairlead
from fairlead_testkit.timing.awaiting import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

READY_SECONDS = 90.0
END_SECONDS = 60.0

type PrintedObject = dict[str, Any]
"""A JSON object."""


def processes() -> dict[int, tuple[int, str]]:
    """Process group and command line of everything that runs."""
    listing = subprocess.run(
        ["/bin/ps", "-wwe", "-o", "pid=", "-o", "pgid=", "-o", "stat=", "-o", "args="],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split(None, 3) for line in listing.stdout.splitlines())
    return {
        int(row[0]): (int(row[1]), row[3]) for row in rows if len(row) == 4 and not row[2].startswith("Z")
    }


class Instance(LocalInstance):
    """A `fairlead up` on the simulated cluster, and what runs for it."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.store = home / "fairlead" / "store"

    def children(self) -> dict[int, str]:
        """Processes that run on this instance's store or for its server, with their commands, by id."""
        config = str(self.store / "nats.conf")
        found = processes()
        groups = {group for group, command in found.values() if config in command}
        return {pid: command for pid, (group, command) in found.items() if group in groups}

    def wait_no_children(self) -> None:
        until(lambda: not self.children(), END_SECONDS, "nothing of it runs")

    def eventually(
        self, right: Callable[[subprocess.CompletedProcess[str]], object], *words: str, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Ask until the answer is right: a scorer that just stood still has no say, or knows not yet what was sent."""
        answers: list[subprocess.CompletedProcess[str]] = []

        def is_right() -> bool:
            answers.append(self.ask(*words, text=text))
            return bool(right(answers[-1]))

        until(is_right, READY_SECONDS, f"the right answer to {words}")
        return answers[-1]

    def told(
        self, *words: str, key: str, right: Callable[[list[PrintedObject]], object]
    ) -> list[PrintedObject]:
        """The entries of an answer in JSON, once they are right."""

        def entries(ended: subprocess.CompletedProcess[str]) -> list[PrintedObject]:
            found: list[PrintedObject] = json.loads(ended.stdout)[key] if ended.stdout else []
            return found

        ended = self.eventually(lambda ended: right(entries(ended)), *words, "-o", "json")
        return entries(ended)


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with Instance(tmp_path_factory.mktemp("home")) as found:
        assert found.said("Ctrl-C ends it").count("running:") == 1, "scripts wait for it"
        yield found
        assert found.ended_by(signal.SIGINT) == 0, found.log
    found.wait_no_children()
    assert not list(found.store.parent.glob("running*"))


def test_up_says_where_it_is_and_what_to_type(instance: Instance) -> None:
    said = instance.log
    assert "NATS: nats://127.0.0.1:" in said
    assert "fairlead submit --tenant team-a --gpus 8" in said
    assert "NATS has no users here: everybody on this machine may submit as any tenant." in said
    assert len(instance.children()) == 6, "reaper, nats-server, sim, two scorers, admitter"


def test_only_an_account_that_the_policy_takes_jobs_of_is_offered() -> None:
    accounts = ["vision", "speech"]
    match = Match(scopes=["speech"])
    assert an_account(accounts, PolicyDocument(tenants=[Tenant(name="speech")])) == "speech"
    assert an_account(accounts, PolicyDocument(tenants=[Tenant(name="nlp", match=match)])) == "speech"
    assert an_account(accounts, PolicyDocument(tenants=[Tenant(name="team-a")])) is None
    assert an_account(accounts, PolicyDocument(tenants=[], unlisted_weight=1)) == "vision"
    listed = PolicyDocument(tenants=[Tenant(name="speech")], unlisted_weight=1)
    assert an_account(accounts, listed) == "speech", "one that is listed before one that is let in"


def test_a_second_instance_on_the_same_store_is_refused(instance: Instance) -> None:
    ended = instance.ask("up")
    assert ended.returncode == 1
    assert "another Fairlead runs" in ended.stderr
    assert instance.running


@pytest.mark.parametrize("text", ["[" * 5_000, "nodes: 3", "nodes: [{name: n}]", None])
def test_a_cluster_file_that_cannot_be_used_is_refused_before_anything_runs(
    text: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    if text is not None:
        file.write_text(text)
    ended = fairlead("up", "--cluster-file", str(file), environ={"XDG_STATE_HOME": str(tmp_path / "home")})
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith("error: ")
    assert not (tmp_path / "home").exists()


def test_jobs_are_followed_to_their_end(instance: Instance) -> None:
    ended = instance.ask(
        "submit", "--tenant", "team-a", "--gpus", "2", "--cpu", "4", "--run-seconds", "0.2", "--id", "one"
    )
    assert ended.returncode == 0, ended.stderr
    steps = ended.stdout.splitlines()
    assert [step.split(": ")[1].split()[0] for step in steps] == ["accepted", "started", "succeeded"]
    again = instance.ask(
        "submit", "--tenant", "team-a", "--gpus", "2", "--cpu", "4", "--run-seconds", "0.2", "--id", "one"
    )
    assert again.returncode == 0, "the same job again is that job"
    assert again.stdout.startswith("team-a/one: known already: succeeded after running ")
    assert (
        "1 job was known already, with the same id and the same body: nothing new runs for it."
        in again.stderr
    )


def test_many_jobs_come_from_standard_input_and_refusals_name_field_value_and_reason(
    instance: Instance,
) -> None:
    jobs = [
        {"id": f"many-{number}", "tenant": "team-b", "demand": {"nvidia.com/gpu": 1}, "run_seconds": 0.05}
        for number in range(200)
    ]
    lines = "\n".join(json.dumps(job) for job in jobs)
    well = instance.ask("submit", "-", "--quiet", text=lines)
    assert well.returncode == 0, well.stderr
    assert "200 submitted, 200 accepted, 200 succeeded" in well.stderr
    bad = instance.ask("submit", "-", text='{"id": "bad", "tenant": "team-b", "demand": {"cpu": -1}}')
    assert bad.returncode == 1
    assert "demand.cpu" in bad.stdout
    assert "negative" in bad.stdout
    assert "-1" in bad.stdout


def test_jobs_are_taken_back_whether_they_run_or_wait(instance: Instance) -> None:
    lines = "\n".join(
        json.dumps({"id": job, "tenant": "team-c", "demand": {"nvidia.com/gpu": 32}, "run_seconds": 900})
        for job in ("back-1", "back-2")
    )
    sent = instance.ask("submit", "-", "--no-follow", text=lines)
    assert "2 of 2 published" in sent.stderr
    words = ("--tenant", "team-c", "--cluster", "sim")
    ended = instance.ask("cancel", "back-1", "back-2", *words)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == [
        f"team-c/back-{number}: is being cancelled" for number in (1, 2)
    ]
    assert "back-" not in instance.ask("queue", "--tenant", "team-c").stdout
    again = instance.ask("cancel", "back-1", *words, "-o", "json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["outcome"] == "cancelled"
    anothers = instance.ask("cancel", "back-1", "--tenant", "team-b", "--cluster", "sim")
    assert anothers.returncode == 1
    assert (
        "team-b/back-1: refused, id: is not known: this tenant submitted no such job to this cluster"
        in anothers.stdout
    )
    nowhere = instance.ask("cancel", "back-1", "--tenant", "team-c", "--cluster", "nowhere")
    assert (nowhere.returncode, "no cluster 'nowhere'" in nowhere.stderr) == (1, True)


def test_an_unknown_cluster_is_said_at_once(instance: Instance) -> None:
    ended = instance.ask("submit", "--tenant", "team-a", "--cpu", "1", "--cluster", "nowhere")
    assert ended.returncode == 1
    assert "no cluster 'nowhere'" in ended.stderr


def test_a_refusal_is_told_to_who_does_not_follow(instance: Instance) -> None:
    job = ("--cpu", "1", "--run-seconds", "1", "--cluster", "sim", "--no-follow")

    def refused() -> subprocess.CompletedProcess[str] | None:
        """Asked again where the machine stood still for the two seconds for which the command listens."""
        ended = instance.ask("submit", "--tenant", "nobody", *job)
        return ended if "1 of 1 published, 1 refused" in ended.stderr else None

    ended = until(refused, READY_SECONDS, "a refusal is told")
    assert "nobody/" in ended.stdout
    assert ": published" not in ended.stdout
    assert ended.returncode == 1


def test_a_program_that_does_not_follow_is_handed_the_answers(instance: Instance) -> None:
    job = (
        "--id",
        "read",
        "--cpu",
        "1",
        "--run-seconds",
        "1",
        "--cluster",
        "sim",
        "--no-follow",
        "-o",
        "json",
    )
    ended = instance.ask("submit", "--tenant", "team-a", *job)
    assert "1 of 1 published" in ended.stderr
    if (
        "not taken up yet" not in ended.stderr
    ):  # a machine that stands still for two seconds hears of it later
        answer = json.loads(ended.stdout.splitlines()[0])
        assert (answer["kind"], answer["id"]) == ("accepted", "read")


def test_a_tenant_that_no_cluster_has_a_queue_for_is_told_who_may_be_meant(instance: Instance) -> None:
    ended = instance.ask("submit", "--tenant", "team-aa", "--cpu", "1")
    assert ended.returncode == 1
    assert "no cluster has a queue for tenant 'team-aa': check the name" in ended.stdout
    assert "team-b" not in ended.stdout
    assert "tenant team-aa: did you mean team-a? The policy names team-a, team-b, team-c" in ended.stderr


def test_questions_are_answered_as_tables_and_as_json(instance: Instance) -> None:
    # They want all memory, so that two wait for as long as we look, and no GPU, so that later jobs can start.
    jobs = [{"id": f"long-{number}", "demand": {"memory": "2Ti"}, "run_seconds": 600} for number in range(3)]
    text = "\n".join(json.dumps(job) for job in jobs)
    sent = instance.ask("submit", "-", "--tenant", "team-c", "--no-follow", "--cluster", "sim", text=text)
    assert sent.returncode == 0, sent.stderr
    # Two wait once all three are known and one has started; from then on nothing changes.
    [pool] = instance.told(
        "queue", key="pools", right=lambda pools: [len(pool["places"]) for pool in pools] == [2]
    )
    waiting = pool["places"][-1]["place"]["id"]
    instance.eventually(lambda ended: waiting in ended.stdout, "queue")
    instance.eventually(lambda ended: "team-c" in ended.stdout, "tenants")
    # The others' jobs are over, which scorers hear a moment later than those who sent them.
    instance.told(
        "tenants",
        key="pools",
        right=lambda pools: (
            [[line["standing"]["tenant"] for line in pool["tenants"]] for pool in pools] == [["team-c"]]
        ),
    )
    instance.eventually(lambda ended: ended.returncode == 0 and "team-c" in ended.stdout, "explain", waiting)
    instance.told(
        "explain", waiting, key="found", right=lambda found: [one["id"] for one in found] == [waiting]
    )
    # Without a terminal: one frame.
    instance.eventually(lambda ended: "pool gpu" in ended.stdout, "top")


def test_a_snapshot_put_in_order_gives_the_queue(instance: Instance) -> None:
    # They want all CPUs, so that all but one wait whatever else runs.
    jobs = [
        {"id": f"paper-{number}", "demand": {"cpu": 200 - 10 * number}, "run_seconds": 600}
        for number in range(5)
    ]
    text = "\n".join(json.dumps(job) for job in jobs)
    for tenant in ("team-a", "team-b"):
        sent = instance.ask("submit", "-", "--tenant", tenant, "--no-follow", "--cluster", "sim", text=text)
        assert sent.returncode == 0, sent.stderr

    def taken() -> tuple[list[PrintedObject], str] | None:
        """Places, and a snapshot: asked between two answers alike. A scorer that just stood still has no say in one of the three."""
        before = instance.ask("queue", "-o", "json", "--limit", "0").stdout
        snapshot = instance.ask("snapshot", "--pool", "gpu")
        after = instance.ask("queue", "-o", "json", "--limit", "0").stdout
        if not (before and after) or (snapshot.returncode, snapshot.stderr) != (0, ""):
            return None
        positions, again = (json.loads(answer)["pools"][0]["places"] for answer in (before, after))
        of_these = [one for one in positions if one["place"]["id"].startswith("paper")]
        return (positions, snapshot.stdout) if len(of_these) > 7 and positions == again else None

    found = until(taken, READY_SECONDS, "a snapshot of one order")
    positions, snapshot = found
    assert [queue["frontend"] for queue in json.loads(snapshot)["queues"]] == ["sim"]
    ordered = instance.ask("order", "-", "-o", "json", "--levels", text=snapshot)
    assert ordered.returncode == 0, ordered.stderr
    [pool] = json.loads(ordered.stdout)["pools"]
    names = {job.get("uid", job["id"]): job["id"] for job in json.loads(snapshot)["jobs"]}
    wanted = [
        (
            position["rank"],
            names[position["place"]["uid"]],
            *(position["place"][name] for name in ("tenant", "tag", "key")),
        )
        for position in positions
    ]
    assert [
        (job["rank"], job["id"], job["tenant"], job["tag"], job["key"]) for job in pool["order"]
    ] == wanted
    listed = [instance.ask(*words, "-o", "name") for words in (("queue", "--limit", "0"), ("snapshot",))]
    assert "team-a/paper-4" in listed[0].stdout.split()
    assert sorted(listed[0].stdout.split()) == sorted(listed[1].stdout.split())
    cut = instance.ask("queue", "--limit", "2", "-o", "name")
    assert f"pool gpu: {len(positions) - 2} more (--limit N shows up to 2000)" in cut.stderr
    whole = instance.eventually(lambda ended: ended.returncode == 0, "snapshot")
    assert json.loads(whole.stdout)["pools"][0]["name"] == "gpu"
    missing = instance.ask("snapshot", "--pool", "tpu")
    assert missing.returncode == 1
    assert "pools are gpu" in missing.stderr


def test_a_job_that_nobody_knows_is_said(instance: Instance) -> None:
    ended = instance.ask("explain", "no-such-job")
    assert ended.returncode == 1
    assert "nobody knows" in ended.stderr
    as_json = instance.ask("explain", "no-such-job", "-o", "json")
    assert as_json.returncode == 1, "a script learns it either way"
    assert json.loads(as_json.stdout)["found"] == []


def test_writing_levels_is_paused_resumed_and_released(instance: Instance) -> None:
    for word, mode in (("pause", "paused"), ("release", "released"), ("resume", "active")):
        # It warns where no scorer answers in time.
        ended = instance.eventually(
            lambda ended: "warning" not in ended.stderr, word, "gpu", "--by", "tester", "--why", "a test"
        )
        assert ended.returncode == 0, ended.stderr
        assert f"pool gpu: {mode}" in ended.stdout
        assert "speaking to NATS at nats://" in ended.stderr
        assert "it holds for: sim (sim)" in ended.stdout
    misspelt = instance.ask("resume", "gpus")
    assert misspelt.returncode == 1
    assert "there is no pool 'gpus', so nothing was changed" in misspelt.stderr


def test_what_is_no_address_is_said_without_a_stack_trace(instance: Instance) -> None:
    ended = instance.ask("queue", "--nats", "nats://me:secret@host:port")
    assert ended.returncode == 2
    assert "is not of the form nats://host:port" in ended.stderr
    assert "secret" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_policy_is_shown_and_changed(instance: Instance, tmp_path: Path) -> None:
    shown = instance.ask("policy", "show")
    assert "team-a" in shown.stdout
    path = tmp_path / "policy.yaml"
    path.write_text(shown.stdout)
    assert "in force already" in instance.ask("policy", "apply", str(path)).stdout
    path.write_text(shown.stdout.replace("window: 32", "window: 31"))
    assert "is in force" in instance.ask("policy", "apply", str(path)).stdout
    path.write_text("window: 0\nnonsense: 1\n")
    refused = instance.ask("policy", "apply", str(path))
    assert refused.returncode == 2
    assert "window" in refused.stderr
    assert "nonsense" in refused.stderr


def test_a_service_that_dies_is_started_again_and_nothing_is_lost(instance: Instance) -> None:
    [admitter] = [pid for pid, command in instance.children().items() if "fairlead_admitter" in command]
    os.kill(admitter, signal.SIGKILL)
    instance.said("admitter-sim ended with signal SIGKILL; starting it again")
    ended = instance.ask("submit", "--tenant", "team-a", "--gpus", "1", "--run-seconds", "0.1")
    assert ended.returncode == 0, ended.stderr


def test_killed_with_sigkill_it_leaves_no_child_and_goes_on_where_it_was(tmp_path: Path) -> None:
    with Instance(tmp_path) as instance:
        instance.said("Ctrl-C ends it")
        job = ("--gpus", "1", "--run-seconds", "600", "--id", "kept")
        sent = instance.ask("submit", "--tenant", "team-a", *job, "--no-follow")
        assert sent.returncode == 0, sent.stderr
        assert instance.ask("pause", "--why", "disks").returncode == 0
        instance.kill()
        instance.wait_no_children()
        stale = instance.ask("tenants")
        assert stale.returncode == 3
        assert "has ended" in stale.stderr
        said = instance.start().said("Ctrl-C ends it", count=2)
        noted = next(line for line in said.splitlines() if "note: all pools are paused" in line)
        assert noted.endswith("(disks); `fairlead resume` ends that")
        # Killed before it was handed on, a submission is handed on now.
        instance.eventually(lambda ended: "team-a/kept" in ended.stdout, "explain", "kept")
        instance.kill()
    instance.wait_no_children()


def test_nobody_there_is_said(tmp_path: Path) -> None:
    ended = fairlead("tenants", "--nats", "nats://127.0.0.1:9", environ={"XDG_STATE_HOME": str(tmp_path)})
    assert ended.returncode == 3
    assert "fairlead up" in ended.stderr
    assert "Traceback" not in ended.stderr
