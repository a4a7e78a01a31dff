"""What Slurm forgets and the bridge remembers: one SQLite file.

A requeue gives a job a new submit time, so its age would be lost. Kept is, of each job, when it was first submitted; and
of admitters the highest epoch that was obeyed.
"""

import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path

from fairlead_contracts.base.instants import Micros
from fairlead_slurm_bridge.errors import StoreError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS first_seen (job TEXT PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID;
"""
_FENCE = "fence"


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
        try:
            self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_FENCE, epoch))
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
