"""The bridge's memory of what neither Slurm nor NATS keeps: one SQLite file.

Kept is, of submissions, which jobs they became; of jobs that run as pods, how they ended and which nodes they hold; until when
NATS has heard of readings; and of admitters the highest epoch that was obeyed.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_slurm.submitting import SubmissionMark
from fairlead_slurm_bridge.errors import SubmissionStoreError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS asked (
    scope TEXT, id TEXT, digest TEXT NOT NULL, job TEXT NOT NULL, queue TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS asked_at ON asked (at);
CREATE TABLE IF NOT EXISTS runs (
    job INTEGER PRIMARY KEY, restarts INTEGER NOT NULL, submitted INTEGER NOT NULL, identity TEXT NOT NULL,
    code INTEGER NOT NULL, replayed INTEGER NOT NULL, at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_at ON runs (at);
CREATE TABLE IF NOT EXISTS stands (
    job INTEGER, node TEXT, restarts INTEGER NOT NULL, came INTEGER NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (job, node)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS stands_at ON stands (at);
"""
_FENCE, _TOLD = "fence", "told"
_KEPT_SECONDS = 30 * 86_400.0
"""Seconds for which a submission is kept: a later copy of it makes another job."""
_KEPT_RUN_SECONDS = 86_400.0
"""Seconds for which an ended program is kept: a slurmctld restored from yesterday's state is another's
affair."""
_KEPT_HELD_NODE_SECONDS = 60 * 86_400.0
"""Seconds for which a held node is kept: a process may be on its node for as long as its job may run."""
_NEVER = -1
_DIGEST_SHOWN = 16
"""Characters of a digest that are compared: a job's comment has no more."""


class SubmittedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A submission that sbatch was called for."""

    digest: str
    job: str
    """Number of the job; empty where nobody knows whether it was made."""
    queue: str
    at: float
    """Time of the note, in wall seconds; once the job is made, of its submission."""

    def is_of(self, digest: str) -> bool:
        """Whether a submission of this digest is the same."""
        return self.digest[:_DIGEST_SHOWN] == digest[:_DIGEST_SHOWN]


class EndedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program that has run to its end."""

    job: int
    restarts: int
    """Restart count of the attempt that the program belongs to."""
    submitted: Micros
    identity: str
    """Digest of what the pod was made from."""
    code: int
    replayed: int = _NEVER
    """Restart count of the attempt whose process is told the code without a pod."""


class HeldNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose slurmd may hold a job."""

    job: int
    node: str
    restarts: int
    """Restart count of the last attempt that was let start there."""
    reported_in: bool = False
    """Whether the process of that attempt reported in."""


class SubmissionStore:
    """The file of one cluster; small and quick, so used from the event loop.

    Raises:
        SubmissionStoreError: from each method: the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.chmod(
                0o600
            )  # one of an earlier release, too; SQLite gives its other files the mode of this one
            self._database = sqlite3.connect(path, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise SubmissionStoreError(f"{path} cannot be opened: {error}") from error
        try:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            self._database.close()
            raise SubmissionStoreError(f"{path} cannot be used: {error}") from error

    def fence(self) -> int:
        """The highest epoch of an admitter that was obeyed."""
        return self._fact(_FENCE)

    def keep_fence(self, epoch: int) -> None:
        """Note that an admitter of this epoch is obeyed from now on."""
        self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_FENCE, epoch))

    def told_until(self) -> Micros:
        """The instant of the last reading of slurmctld that NATS has heard of; 0 where there was none."""
        return self._fact(_TOLD)

    def keep_told_until(self, at: Micros) -> None:
        """Note the instant of a reading that NATS has heard of."""
        self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_TOLD, at))

    def asked(self, scope: str, submission: str) -> SubmittedJob | None:
        """The job of this submission; None where none was asked for."""
        query = "SELECT digest, job, queue, at FROM asked WHERE scope = ? AND id = ?"
        return next(iter(self._structs(SubmittedJob, query, (scope, submission))), None)

    def note_asked(self, scope: str, submission: str, asked: SubmittedJob) -> None:
        """Note a job that is asked for, or was made."""
        values = (scope, submission, asked.digest, asked.job, asked.queue, asked.at)
        self._write("INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?, ?, ?)", values)
        self._write("DELETE FROM asked WHERE at < ?", (asked.at - _KEPT_SECONDS,))

    def made_of(self, scope: str, mark: SubmissionMark, job: str) -> bool:
        """Whether this job of an account may be what its mark says: no other is noted for that submission."""
        noted = self.asked(scope, mark.submission)
        return noted is None or (noted.job == job if noted.job else mark.is_of(noted.digest))

    def marks(self) -> dict[tuple[str, str], SubmissionMark]:
        """The marks of the jobs that were made of submissions, by account and number; the last, where one was given again."""
        rows = self._rows("SELECT scope, job, id, digest FROM asked WHERE job != '' ORDER BY at")
        return {
            (scope, job): SubmissionMark(submission=name, digest=digest) for scope, job, name, digest in rows
        }

    def forget_asked(self, scope: str, submission: str) -> None:
        """Forget a job that was refused, so that it may be asked for again."""
        self._write("DELETE FROM asked WHERE scope = ? AND id = ?", (scope, submission))

    def runs(self) -> list[EndedProgram]:
        """Programs of jobs that have ended, the oldest first."""
        query = "SELECT job, restarts, submitted, identity, code, replayed FROM runs ORDER BY at"
        return self._structs(EndedProgram, query)

    def keep_run(self, run: EndedProgram, at: float) -> None:
        """Keep a program that ended at that wall second in place of its job's last one; those of the day before go."""
        values = (*msgspec.structs.astuple(run), at)
        self._write("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        self._write("DELETE FROM runs WHERE at < ?", (at - _KEPT_RUN_SECONDS,))

    def forget_run(self, job: int) -> None:
        """Forget the last run of a job, which runs anew."""
        self._write("DELETE FROM runs WHERE job = ?", (job,))

    def held_nodes(self) -> list[HeldNode]:
        """Nodes that may hold a job, the oldest first."""
        return self._structs(HeldNode, "SELECT job, node, restarts, came FROM stands ORDER BY at")

    def keep_held_node(self, held: HeldNode, at: float) -> None:
        """Keep a held node from that wall second on; those that are older than any job may run go."""
        values = (*msgspec.structs.astuple(held), at)
        self._write("INSERT OR REPLACE INTO stands VALUES (?, ?, ?, ?, ?)", values)
        self._write("DELETE FROM stands WHERE at < ?", (at - _KEPT_HELD_NODE_SECONDS,))

    def forget_held_node(self, job: int, node: str) -> None:
        """Forget a node that the job holds no more."""
        self._write("DELETE FROM stands WHERE job = ? AND node = ?", (job, node))

    def _fact(self, name: str) -> int:
        rows = self._rows("SELECT value FROM facts WHERE name = ?", (name,))
        return next((value for (value,) in rows), 0)

    def _write(self, statement: str, values: Sequence[object]) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise SubmissionStoreError(f"cannot be written: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _structs[T: msgspec.Struct](
        self, kind: type[T], query: str, values: Sequence[object] = ()
    ) -> list[T]:
        """The rows of a query as structs whose fields have the order of its columns. SQLite has numbers for truth."""
        named = (dict(zip(kind.__struct_fields__, row, strict=True)) for row in self._rows(query, values))
        return [msgspec.convert(one, kind, strict=False) for one in named]

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query, of whatever kinds the schema says."""
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise SubmissionStoreError(f"cannot be read: {error}") from error
