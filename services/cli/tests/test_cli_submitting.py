import dataclasses
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bucket, Bus
from fairlead_cli.client.submitting.flags import JobFlags
from fairlead_cli.client.submitting.following import Following, answer_line
from fairlead_cli.client.submitting.gathering import gather
from fairlead_cli.client.submitting.publishing import pack, publish_all
from fairlead_cli.client.submitting.reading import Draft
from fairlead_cli.client.submitting.session import who_is_meant
from fairlead_cli.errors import InputError
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.state import Outcome
from fairlead_contracts.messages.submissions import Accepted, AnyAnswer, Ended, Refused, Started
from fairlead_testkit.nats_servers.streams import change_stream

FLAGS = JobFlags(cluster="sim", tenant="team-a")
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def written(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("one.json", '{"id": "a", "demand": {"cpu": 1}}'),
        ("many.json", '[{"id": "a", "demand": {"cpu": 1}}, {"id": "b", "demand": {"cpu": 1}}]'),
        ("one.yaml", "id: a\ndemand: {cpu: 1}\n"),
        ("many.yaml", "- {id: a, demand: {cpu: 1}}\n- {id: b, demand: {cpu: 1}}\n"),
        ("documents.yaml", "id: a\ndemand: {cpu: 1}\n---\nid: b\ndemand: {cpu: 1}\n"),
        ("lines.jsonl", '{"id": "a", "demand": {"cpu": 1}}\n\n{"id": "b", "demand": {"cpu": 1}}\n'),
    ],
)
def test_files_hold_one_or_many(tmp_path: Path, name: str, text: str) -> None:
    jobs = gather(written(tmp_path, name, text), FLAGS)
    assert [job.id for job in jobs] == (["a"] if name.startswith("one") else ["a", "b"])
    assert {job.tenant for job in jobs} == {"team-a"}


def test_a_job_of_a_file_wins_over_flags_and_takes_from_them_what_it_leaves_out(tmp_path: Path) -> None:
    path = written(
        tmp_path, "jobs.json", '[{"id": "a", "tenant": "x", "cluster": "c", "pods": 2}, {"id": "b"}]'
    )
    flags = JobFlags(cluster="sim", tenant="team-a", pods=1, cpu="4")
    first, second = gather(path, flags)
    assert (first.tenant, first.cluster, first.body["pods"]) == ("x", "c", 2)
    assert (second.tenant, second.cluster, second.body["pods"]) == ("team-a", "sim", 1)
    assert second.body["demand"] == {"cpu": "4"}
    assert "tenant" not in first.body
    assert "cluster" not in first.body


def test_standard_input_gives_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"id": "a"}\n{"id": "b"}\n')))
    assert [job.id for job in gather(Path("-"), FLAGS)] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "lines.jsonl",
            '{"id": 1}\n{"id"\n',
            "lines.jsonl is not JSON: line 2, column 6: the text ends here",
        ),
        ("nan.jsonl", '{"demand": {"cpu": NaN}}', "demand.cpu: must be a finite number"),
        ("broken.yaml", "a: [", "neither JSON nor YAML"),
        ("list.json", "[1]", "must be a mapping"),
        ("empty.json", "[]", "empty[.]json: there is no job in it"),
        ("twice.json", '[{"id": "a"}, {"id": "a"}]', "id of another one"),
        (
            "keys.json",
            '[{"id": "a", "demand": {"cpu": 1, "cpu": 2}}]',
            "demand.cpu: line 1, column 42: is given twice",
        ),
        ("keys.jsonl", '{"id": 1}\n{"pods": 1, "pods": 2}\n', "pods: line 2, column 21: is given twice"),
        (
            "keys.yaml",
            "pods: 1\npods: 2\n",
            "keys.yaml: pods: line 2, column 1: key 'pods' is given in line 1",
        ),
        ("broken.json", '{"id": "a",\n "pods": 1,}', "broken.json is not JSON: line 2, column 11: no comma"),
        (
            "lines.json",
            '{"id": "a"}\n{"id": "b"}\n',
            "lines.json is not JSON: line 2, column 1: the JSON ends",
        ),
        (
            "long.jsonl",
            '{"id": "a"}\n{"pods": ' + "9" * 5000 + "}",
            "long.jsonl: pods: line 2, column 10: has 5000",
        ),
        (
            "deep.json",
            '{"pods": ' + "[" * 5000 + "]" * 5000 + "}",
            "line 1, column 109: lists and mappings nest",
        ),
        (
            "deep.jsonl",
            '{"pods": ' + "[" * 5000 + "]" * 5000 + "}",
            "line 1, column 109: lists and mappings nest",
        ),
        (
            "far.json",
            " " * 2**20 + '{"a": ' + "[" * 5000 + "]" * 5000 + "}",
            r"job 1: a(\[0\])+.*: lists and mappings nest",
        ),
        (
            "half.json",
            '{"labels": {"a": "\\ud800"}}',
            "job 1: labels.a: half of a surrogate pair is not text",
        ),
        (
            "half-name.json",
            '{"labels": {"\\ud800": "a"}}',
            r"job 1: labels\.\\ud800: has a name that is not text",
        ),
        ("null.yaml", "labels: {~: a}", "job 1: labels.null: has a name that is not text"),
        ("true.yaml", "labels: {yes: a}", "job 1: labels.true: has a name that is not text"),
        ("null.jsonl", "null", "job 1: a job is empty"),
        (
            "secret.json",
            '"-----BEGIN PRIVATE KEY-----"',
            "a job must be a mapping of keys and values, and is text$",
        ),
        ("nobody.json", '{"tenant": 3}', "must be a name"),
        ("cluster.json", '{"cluster": ""}', "cluster"),
    ],
)
def test_what_cannot_be_published_is_said(tmp_path: Path, name: str, text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        gather(written(tmp_path, name, text), FLAGS)


def test_names_that_json_writes_as_text_are_taken(tmp_path: Path) -> None:
    path = written(tmp_path, "job.yaml", "labels: {1: a, 1.5: b, 2026-11-21: c}\n")
    [job] = gather(path, FLAGS)
    assert b'"labels":{"1":"a","1.5":"b","2026-11-21":"c"}' in msgspec.json.encode(job.body)


def test_a_line_ends_only_where_json_has_its_ends(tmp_path: Path) -> None:
    text = '{"labels": {"a": "b\u2028c\x85d"}}\r\n\r{"id": "last"}'
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    first, last = gather(path, FLAGS)
    assert first.body["labels"] == {"a": "b\u2028c\x85d"}
    assert last.id == "last"


def test_standard_input_that_is_no_text_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"id": "a"}\n{"id": "\xff"}\n')))
    with pytest.raises(
        InputError, match=r"^standard input cannot be read: line 2, column 9: its text must be in UTF-8$"
    ):
        gather(Path("-"), FLAGS)


def test_of_several_jobs_the_one_that_is_wrong_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "jobs.jsonl", '{"tenant": "a", "demand": {}}\n{"demand": {}}\n')
    with pytest.raises(InputError, match=r"jobs[.]jsonl: job 2: no tenant is given$") as refused:
        gather(path, JobFlags())
    assert refused.value.hint == "Say whose job it is with --tenant NAME."


def test_that_nobody_said_whose_job_it_is_is_said_with_the_flag() -> None:
    with pytest.raises(InputError, match=r"^no tenant is given$") as refused:
        gather(None, JobFlags(cluster="sim", gpus="1"))
    assert "--tenant NAME" in refused.value.hint


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing[.]json cannot be read: No such file or directory$"):
        gather(tmp_path / "missing.json", FLAGS)


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(
        InputError, match=r"jobs[.]json cannot be read: line 1, column 1: its text must be in UTF-8$"
    ):
        gather(path, FLAGS)


def test_one_id_does_not_name_two_jobs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--id"):
        gather(written(tmp_path, "jobs.json", "[{}, {}]"), dataclasses.replace(FLAGS, id="x"))


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf"])
def test_a_number_that_is_none_is_refused_and_not_published_as_nothing(seconds: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^run_seconds: must be a finite number \(found (?:nan|-?inf)\)$"):
        gather(None, dataclasses.replace(FLAGS, gpus="1", run_seconds=float(seconds)))
    yaml = f"tenant: t\ndemand: {{cpu: 1}}\ntemplate: {{args: [1, {seconds.replace('nan', '.nan').replace('inf', '.inf')}]}}\n"
    with pytest.raises(InputError, match=r"template[.]args\[1\]: must be a finite number"):
        gather(written(tmp_path, "job.yaml", yaml), FLAGS)


def test_nobody_can_guess_a_message_id() -> None:
    """An older server drops what comes under a Msg-Id that another tenant has just used."""
    draft = Draft(cluster="sim", tenant="x", id="a", body={"id": "a"})
    assert pack(draft).msg_id != pack(draft).msg_id


def test_answers_to_an_unreadable_id_are_looked_for_under_the_message_id() -> None:
    message = pack(Draft(cluster="sim", tenant="x", id="5", body={"id": 5}))
    assert message.name == ("x", message.msg_id)
    assert message.subject == "fairlead.v1.submit.sim.x"
    assert json.loads(message.payload) == {"id": 5}


def accepted(job: str) -> Accepted:
    return Accepted(id=job, tenant="t", cluster="sim", at=NOW, job=job, queue="main", job_class="normal")


def started(job: str) -> Started:
    return Started(id=job, tenant="t", cluster="sim", at=NOW, job=job, waited_seconds=1.5)


def ended(job: str, outcome: Outcome = Outcome.SUCCEEDED) -> Ended:
    return Ended(id=job, tenant="t", cluster="sim", at=NOW, job=job, outcome=outcome, ran_seconds=2.0)


def refused(job: str) -> Refused:
    return Refused(
        id=job,
        tenant="t",
        cluster="sim",
        at=NOW,
        field="demand.cpu",
        value="-1",
        reason="may not be negative",
    )


def test_jobs_are_followed_until_each_has_ended_or_was_refused() -> None:
    following = Following([("t", "a"), ("t", "b")])
    assert following.take(accepted("a"))
    assert not following.take(accepted("a")), "a second copy is no news"
    assert not following.take(accepted("stranger"))
    assert following.take(refused("b"))
    assert following.open == 1
    assert following.take(ended("a"))
    assert following.done
    tally = following.tally()
    assert not tally.well
    assert tally.words() == "2 submitted, 1 accepted, 1 succeeded, 1 refused"


def test_a_refusal_of_another_body_under_the_same_id_does_not_end_the_job_that_was_taken() -> None:
    following = Following([("t", "a")])
    assert following.take(accepted("a"))
    assert not following.take(refused("a"))
    assert following.open == 1
    assert following.take(ended("a"))
    assert following.done
    assert following.tally().refused == 0


def test_who_stops_following_is_told_how_many_go_on() -> None:
    following = Following([("t", "a"), ("t", "b")])
    assert following.left_in_words() == "2 jobs have not ended; they go on without being followed"
    following.take(ended("b"))
    assert following.left_in_words() == "1 job has not ended; it goes on without being followed"


def test_only_success_of_all_is_well() -> None:
    for outcome in Outcome:
        following = Following([("t", "a")])
        following.take(ended("a", outcome))
        assert following.tally().well is (outcome is Outcome.SUCCEEDED)


def test_what_was_never_stored_is_not_waited_for() -> None:
    following = Following([("t", "a")])
    following.give_up(("t", "a"))
    assert following.done
    assert not following.tally().well


def test_each_step_is_one_line() -> None:
    lines = [answer_line(answer) for answer in (accepted("a"), refused("a"), started("a"), ended("a"))]
    assert lines == [
        "t/a: accepted on sim, queue main, class normal",
        "t/a: refused, demand.cpu: may not be negative (found -1)",
        "t/a: started after waiting 1.5 s",
        "t/a: succeeded after running 2.0 s",
    ]
    warned = msgspec.structs.replace(accepted("a"), warnings=["prioirty is odd", "so is x"])
    assert answer_line(warned).endswith("class normal; warning: prioirty is odd; warning: so is x")


def again(answer: AnyAnswer) -> AnyAnswer:
    return msgspec.structs.replace(answer, repeated=True)


def test_jobs_that_were_known_already_are_counted_apart_and_say_that_nothing_new_runs() -> None:
    following = Following([("t", "a"), ("t", "b"), ("t", "c")])
    following.take(again(ended("a")))
    following.take(again(accepted("b")))
    following.take(accepted("c"))
    following.take(again(accepted("c")))
    assert [following.is_known(("t", job)) for job in "abc"] == [True, True, False], (
        "c was made here, and its second copy was sent for safety"
    )
    following.take(ended("b"))
    following.take(ended("c"))
    tally = following.tally()
    assert tally.well, "what is asked for twice is done"
    assert tally.words() == "3 submitted, 1 accepted, 2 known already, 3 succeeded"
    assert tally.why_nothing_new_runs() == (
        "2 jobs were known already, with the same id and the same body: nothing new runs for them. "
        "A new run needs new ids."
    )
    assert answer_line(again(ended("a"))) == "t/a: known already: succeeded after running 2.0 s"


def test_of_jobs_that_are_all_known_none_is_said_to_be_accepted() -> None:
    following = Following([("t", "a")])
    following.take(again(accepted("a")))
    assert following.tally().words() == "1 submitted, 1 known already, 0 succeeded"
    assert following.tally().why_nothing_new_runs().endswith("for it. A new run needs a new id.")
    assert not Following([("t", "a")]).tally().why_nothing_new_runs()


@pytest.mark.integration
async def test_a_tenant_of_the_policy_without_a_queue_is_not_asked_whether_it_means_itself(bus: Bus) -> None:
    await Bucket(bus, topology.POLICY).create(subjects.DOCUMENT_KEY, b'{"tenants": [{"name": "vision"}]}')
    assert await who_is_meant(bus, ["vision"]) == []
    [told] = await who_is_meant(bus, ["vison", "vision"])
    assert told.startswith("tenant vison: did you mean vision?")


@pytest.mark.integration
async def test_who_is_acknowledged_nothing_is_told_where_to_look(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where NATS' disk is full: it says so in its own log alone."""
    monkeypatch.setattr("fairlead_bus.streams.publisher.ACK_SECONDS", 0.05)
    await change_stream(bus, topology.SUBMIT, no_ack=True)
    failed: list[str] = []
    drafts = [Draft(cluster="lab", tenant="x", id=name, body={"id": name}) for name in "ab"]
    assert await publish_all(bus, list(map(pack, drafts)), failed=lambda _, why: failed.append(why)) == []
    assert failed == ["could not be stored: no ack within 0.05 s"] * 2
    assert "`no space left on device`" in capsys.readouterr().err
