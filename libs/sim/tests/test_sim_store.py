"""The cluster's file: what was committed is there again, and nobody else writes to it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from fairlead_bus.facts.statement_publisher import OutgoingEvent
from fairlead_contracts import subjects
from fairlead_contracts.frontend.verbs import CreateJob, DeleteJob
from fairlead_sim.changes import ClusterChanges, ClusterCounters, JobRetention
from fairlead_sim.cluster import SimCluster
from fairlead_sim.config import DEFAULT
from fairlead_sim.errors import ClusterStoreError
from fairlead_sim.jobs import JobName
from fairlead_sim.statements import changed
from fairlead_sim.store import ClusterStore, batch_of


def a_request(id_: str) -> CreateJob:
    return CreateJob(
        scope="team-a",
        id=id_,
        digest="d",
        queue=None,
        demand={"cpu": 1000},
        pods=1,
        requested_class="urgent",
        submission=id_,
        submitted=5,
        run=100,
        labels={"a": "ü"},
    )


def test_what_was_committed_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "sim.sqlite"
    store = ClusterStore(path, "sim")
    cluster = SimCluster(
        "sim", DEFAULT, uid_prefix=store.identity, retention=JobRetention(ended=50, names=50)
    )
    for id_ in ("one", "two", "three"):
        cluster.create(a_request(id_), 10)
    cluster.delete(DeleteJob(scope="team-a", id="three"), 11)
    cluster.advance(12)
    event = OutgoingEvent(seq=1, subject="s", msg_id="m", payload=b"p")
    store.commit(batch_of(cluster.take_changes(), cluster.counters, [event]))
    cluster.advance(61)  # "three" ended at 11: it is forgotten, and its name is kept
    store.commit(batch_of(cluster.take_changes(), cluster.counters, []))
    store.close()

    again = ClusterStore(path, "sim")
    kept = again.load()
    assert {job.name: job for job in kept.jobs} == cluster.jobs
    found = again.find(JobName("team-a", "three"))
    assert found is not None
    assert (found.digest, found.until) == ("d", 11 + 50 + 50)
    assert again.find(JobName("team-a", "one")) is None
    assert kept.counters == cluster.counters
    assert kept.outbox == [event]
    again.commit(batch_of(ClusterChanges(at=found.until), ClusterCounters(rev=99), [], [1]))
    assert again.load().outbox == []
    assert again.find(JobName("team-a", "three")) is None
    assert again.load().counters.rev == 99
    again.close()


def forgetful(tmp_path: Path) -> tuple[ClusterStore, SimCluster]:
    """A cluster that soon forgets, and has a job that has ended; nothing is stored yet."""
    store = ClusterStore(tmp_path / "sim.sqlite", "sim")
    cluster = SimCluster(
        "sim", DEFAULT, uid_prefix=store.identity, retention=JobRetention(ended=50, names=50)
    )
    cluster.create(a_request("one"), 10)
    cluster.delete(DeleteJob(scope="team-a", id="one"), 11)
    return store, cluster


def test_what_was_forgotten_with_its_name_at_once_is_gone_for_good(tmp_path: Path) -> None:
    """The cluster slept for longer than it remembers: both ends come in one commit."""
    store, cluster = forgetful(tmp_path)
    store.commit(batch_of(cluster.take_changes(), cluster.counters, []))
    cluster.advance(1000)
    changes = cluster.take_changes()
    assert changed(cluster, changes) == {subjects.state("sim", "job", "one", scope="team-a"): None}
    store.commit(batch_of(changes, cluster.counters, []))
    assert store.load().jobs == []
    assert store.find(JobName("team-a", "one")) is None
    store.close()


def test_a_file_of_the_version_before_keeps_its_names(tmp_path: Path) -> None:
    path = tmp_path / "sim.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.executescript(
            """
            CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE names (scope TEXT, id TEXT, body BLOB NOT NULL, PRIMARY KEY (scope, id)) WITHOUT ROWID;
            PRAGMA user_version = 1;
            """
        )
        old.executemany(
            "INSERT INTO facts (name, value) VALUES (?, ?)",
            [("cluster", b"sim"), ("identity", b"0123456789")],
        )
        body = msgspec.msgpack.encode({"digest": "d", "queue": "main", "until": 70})
        old.execute("INSERT INTO names (scope, id, body) VALUES ('team-a', 'one', ?)", (body,))
    store = ClusterStore(path, "sim")
    assert store.identity == "0123456789"
    store.commit(batch_of(ClusterChanges(at=69), ClusterCounters(), []))
    assert store.find(JobName("team-a", "one")) is not None
    store.commit(batch_of(ClusterChanges(at=70), ClusterCounters(), []))
    assert store.find(JobName("team-a", "one")) is None
    store.close()
    ClusterStore(path, "sim").close()


def test_a_name_that_is_used_again_at_once_is_the_new_job(tmp_path: Path) -> None:
    store, cluster = forgetful(tmp_path)
    cluster.advance(1000)
    cluster.create(a_request("one"), 1000)
    changes = cluster.take_changes()
    assert None not in changed(cluster, changes).values()
    store.commit(batch_of(changes, cluster.counters, []))
    assert {job.name: job for job in store.load().jobs} == cluster.jobs
    store.close()


def test_a_file_is_one_process_and_one_clusters(tmp_path: Path) -> None:
    path = tmp_path / "sim.sqlite"
    store = ClusterStore(path, "sim")
    with pytest.raises(ClusterStoreError, match="another process"):
        ClusterStore(path, "sim")
    identity = store.identity
    store.close()
    with pytest.raises(ClusterStoreError, match="'sim'"):
        ClusterStore(path, "other")
    again = ClusterStore(path, "sim", durability="full")
    assert again.identity == identity
    again.close()
    fresh = ClusterStore(tmp_path / "fresh.sqlite", "sim")
    assert fresh.identity != identity
    fresh.close()


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("this is no database, however long the text may be" * 50)
    with pytest.raises(ClusterStoreError):
        ClusterStore(path, "sim")
    with pytest.raises(ClusterStoreError):
        ClusterStore(tmp_path / "no-such-folder" / "sim.sqlite", "sim")


def test_a_commit_that_fails_changes_nothing(tmp_path: Path) -> None:
    store = ClusterStore(tmp_path / "sim.sqlite", "sim")
    event = OutgoingEvent(seq=1, subject="s", msg_id="m", payload=b"p")
    broken = OutgoingEvent(seq=2, subject="s", msg_id="m", payload=None)  # type: ignore[arg-type] # what the file refuses
    with pytest.raises(ClusterStoreError):
        store.commit(batch_of(ClusterChanges(), ClusterCounters(), [event, broken]))
    assert store.load().outbox == []
    store.commit(batch_of(ClusterChanges(), ClusterCounters(), [event]))
    assert store.load().outbox == [event]
    store.close()
