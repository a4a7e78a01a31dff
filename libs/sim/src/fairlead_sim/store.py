"""The truth of a simulated cluster: one SQLite file, as an API server has etcd.

Write-ahead logging: a killed process loses nothing that was committed. With `full` each commit is synced too, so that
a power loss loses nothing either. One process at a time: a lock beside the file is held for the life of the process.
"""

import fcntl
import secrets
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from fairlead_bus.facts.statement_publisher import OutgoingEvent
from fairlead_contracts.base.instants import Micros
from fairlead_sim.changes import ClusterChanges, ClusterCounters, UsedName
from fairlead_sim.errors import ClusterStoreError
from fairlead_sim.jobs import JobName, SimJob

type Durability = Literal["normal", "full"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (scope TEXT, id TEXT, body BLOB NOT NULL, PRIMARY KEY (scope, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS names (
    scope TEXT, id TEXT, body BLOB NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS names_by_end ON names (until);
CREATE TABLE IF NOT EXISTS outbox (seq INTEGER PRIMARY KEY, subject TEXT, msg_id TEXT, payload BLOB NOT NULL);
"""
_VERSION = 2
_BEFORE = 1
"""Version before, in which a used name's body alone said until when it is kept."""

_COUNTERS = "ledger"
"""The row of the counters, by the name that the first files gave it."""

_packer = msgspec.msgpack.Encoder()
_job = msgspec.msgpack.Decoder(SimJob)
_known = msgspec.msgpack.Decoder(UsedName)
_counted = msgspec.msgpack.Decoder(ClusterCounters)


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of one commit as rows: taken when they were decided, so that nothing can change under the writer."""

    counters: bytes
    jobs: list[tuple[str, str, bytes]]
    names: list[tuple[str, str, bytes, Micros]]
    at: Micros
    """Instant of the batch: names that were kept until then go."""
    outgoing: list[OutgoingEvent]
    published: list[int]
    """Sequences of the outbox that NATS has acked."""


def batch_of(
    changes: ClusterChanges,
    counters: ClusterCounters,
    outgoing: list[OutgoingEvent],
    published: Iterable[int] = (),
) -> Batch:
    """The rows of some changes."""
    return Batch(
        counters=_packer.encode(counters),
        jobs=[(name.scope, name.id, _packer.encode(job)) for name, job in changes.jobs.items()],
        names=[
            (name.scope, name.id, _packer.encode(known), known.until) for name, known in changes.gone.items()
        ],
        at=changes.at,
        outgoing=outgoing,
        published=list(published),
    )


class StoredCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a file, but for the names of forgotten jobs: of those there may be millions."""

    counters: ClusterCounters
    jobs: list[SimJob]
    outbox: list[OutgoingEvent]


class ClusterStore:
    """The file of one cluster. Blocking: the service calls `commit` in a thread of its own."""

    def __init__(self, path: Path, cluster: str, *, durability: Durability = "normal") -> None:
        """Open the file, or make it.

        Args:
            path: the file's path; its folder must exist.
            durability: `normal` survives a killed process, `full` a power loss too.

        Raises:
            ClusterStoreError: another process has it, it is another cluster's, or it is no file of ours.
        """
        self.path = path
        self._lock = _lock(path)
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute(f"PRAGMA synchronous = {durability}")
            self._bring_up_to_date()
            self._database.executescript(_SCHEMA)
            self._claim(cluster)
        except sqlite3.Error as error:
            self.close()
            raise ClusterStoreError(f"{path}: {error}") from error
        except ClusterStoreError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
        self._lock.close()

    @property
    def identity(self) -> str:
        """The file's identity, given when it was made: uids begin with it, so that no two files give the same."""
        return self._fact("identity").decode()

    def load(self) -> StoredCluster:
        """Everything that was committed."""
        counters = self._fact(_COUNTERS)
        return StoredCluster(
            counters=_counted.decode(counters) if counters else ClusterCounters(),
            jobs=[_job.decode(body) for (body,) in self._database.execute("SELECT body FROM jobs")],
            outbox=[
                OutgoingEvent(seq=seq, subject=subject, msg_id=msg_id, payload=payload)
                for seq, subject, msg_id, payload in self._database.execute(
                    "SELECT seq, subject, msg_id, payload FROM outbox ORDER BY seq"
                )
            ],
        )

    def find(self, name: JobName) -> UsedName | None:
        """The entry of a name whose job was forgotten.

        Raises:
            ClusterStoreError: the file cannot be read.
        """
        try:
            row = self._database.execute(
                "SELECT body FROM names WHERE scope = ? AND id = ?", (name.scope, name.id)
            ).fetchone()
        except sqlite3.Error as error:
            raise ClusterStoreError(f"{self.path}: {error}") from error
        return None if row is None else _known.decode(row[0])

    def commit(self, batch: Batch) -> None:
        """Write a batch, all of it or nothing.

        Raises:
            ClusterStoreError: it could not be written; the process must not go on with what it believes.
        """
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._write(batch)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise ClusterStoreError(f"{self.path}: {error}") from error

    def _write(self, batch: Batch) -> None:
        write = self._database.executemany
        write("REPLACE INTO jobs (scope, id, body) VALUES (?, ?, ?)", batch.jobs)
        write("REPLACE INTO names (scope, id, body, until) VALUES (?, ?, ?, ?)", batch.names)
        write("DELETE FROM jobs WHERE scope = ? AND id = ?", [row[:2] for row in batch.names])
        self._database.execute("DELETE FROM names WHERE until <= ?", (batch.at,))
        write(
            "REPLACE INTO outbox (seq, subject, msg_id, payload) VALUES (?, ?, ?, ?)",
            [(event.seq, event.subject, event.msg_id, event.payload) for event in batch.outgoing],
        )
        write("DELETE FROM outbox WHERE seq = ?", [(seq,) for seq in batch.published])
        self._database.execute("REPLACE INTO facts (name, value) VALUES (?, ?)", (_COUNTERS, batch.counters))

    def _fact(self, name: str) -> bytes:
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return bytes(row[0]) if row else b""

    def _bring_up_to_date(self) -> None:
        """Adds the column for how long a name is kept, which files of the version before lack."""
        [version] = self._database.execute("PRAGMA user_version").fetchone()
        if version != _BEFORE:
            return
        self._database.create_function("kept_until", 1, lambda body: _known.decode(body).until)
        for statement in (
            "BEGIN IMMEDIATE",
            "ALTER TABLE names ADD COLUMN until INTEGER NOT NULL DEFAULT 0",
            "UPDATE names SET until = kept_until(body)",
            f"PRAGMA user_version = {_VERSION}",
            "COMMIT",
        ):
            self._database.execute(statement)

    def _claim(self, cluster: str) -> None:
        """Mark a new file as this cluster's; refuse one that is not."""
        [version] = self._database.execute("PRAGMA user_version").fetchone()
        owner = self._fact("cluster").decode()
        if version not in {0, _VERSION} or (owner and owner != cluster):
            raise ClusterStoreError(
                f"{self.path} holds cluster {owner!r} in version {version}, not {cluster!r}"
            )
        if owner:
            return
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute(f"PRAGMA user_version = {_VERSION}")
        self._database.executemany(
            "INSERT INTO facts (name, value) VALUES (?, ?)",
            [("cluster", cluster.encode()), ("identity", secrets.token_hex(5).encode())],
        )
        self._database.execute("COMMIT")


class _Lock:
    """A lock held until closed, and let go of by the kernel when the process dies."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise ClusterStoreError(f"another process uses {path}") from error

    def close(self) -> None:
        self._file.close()


def _lock(path: Path) -> _Lock:
    try:
        return _Lock(path.with_name(path.name + "-lock"))
    except OSError as error:
        raise ClusterStoreError(f"{path}: {error}") from error
