"""What Slurm forgets and the bridge remembers: one SQLite file.

A requeue gives a job a new submit time, so its age would be lost. Kept is, of each job, when it was first submitted; and
of admitters the highest epoch that was obeyed.
"""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_slurm_bridge.errors import StoreError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS asked (
    scope TEXT, id TEXT, digest TEXT NOT NULL, job TEXT NOT NULL, queue TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS asked_at ON asked (at);
CREATE TABLE IF NOT EXISTS first_seen (job TEXT PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID;
"""
_FENCE = "fence"
_KEPT_SECONDS = 30 * 86_400.0
"""A copy of a submission that comes later than that makes another job."""
_DIGEST_SHOWN = 16
"""Characters of a digest that are compared: a job's comment has no more."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was asked for."""

    digest: str
    job: str
    """Its number; empty where nobody knows whether it was made."""
    queue: str
    at: float
    """Wall seconds."""

    def is_of(self, digest: str) -> bool:
        """Whether a submission of this digest is the same."""
        return self.digest[:_DIGEST_SHOWN] == digest[:_DIGEST_SHOWN]


class Store:
    """The file of one cluster; small and quick, so used from the event loop.

    Raises:
        StoreError: of each method: the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{path} cannot be opened: {error}") from error
        try:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            self._database.close()
            raise StoreError(f"{path} cannot be used: {error}") from error

    def first_seen(self) -> dict[str, Micros]:
        """By job."""
        return dict(self._read("SELECT job, since FROM first_seen"))

    def remember(self, seen: Mapping[str, Micros], forgotten: Collection[str]) -> None:
        """These jobs were first submitted then; those are gone."""
        if not seen and not forgotten:
            return
        try:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO first_seen VALUES (?, ?)", seen.items())
            self._database.executemany("DELETE FROM first_seen WHERE job = ?", [(job,) for job in forgotten])
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"cannot be written: {error}") from error

    def fence(self) -> int:
        """The highest epoch of an admitter that was obeyed."""
        return next(
            (value for name, value in self._read("SELECT name, value FROM facts") if name == _FENCE), 0
        )

    def keep_fence(self, epoch: int) -> None:
        """An admitter of this epoch is obeyed from now on."""
        self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_FENCE, epoch))

    def asked(self, scope: str, submission: str) -> Asked | None:
        """What was asked for under this id; None where nothing was."""
        query = "SELECT digest, job, queue, at FROM asked WHERE scope = ? AND id = ?"
        try:
            found = self._database.execute(query, (scope, submission)).fetchone()
        except sqlite3.Error as error:
            raise StoreError(f"cannot be read: {error}") from error
        return None if found is None else Asked(digest=found[0], job=found[1], queue=found[2], at=found[3])

    def note_asked(self, scope: str, submission: str, asked: Asked) -> None:
        """This is asked for, or was made."""
        values = (scope, submission, asked.digest, asked.job, asked.queue, asked.at)
        self._write("INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?, ?, ?)", values)
        self._write("DELETE FROM asked WHERE at < ?", (asked.at - _KEPT_SECONDS,))

    def forget_asked(self, scope: str, submission: str) -> None:
        """It was refused: it may be asked for again."""
        self._write("DELETE FROM asked WHERE scope = ? AND id = ?", (scope, submission))

    def _write(self, statement: str, values: Sequence[object]) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise StoreError(f"cannot be written: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _read(self, query: str) -> list[tuple[str, int]]:
        try:
            return self._database.execute(query).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"cannot be read: {error}") from error
