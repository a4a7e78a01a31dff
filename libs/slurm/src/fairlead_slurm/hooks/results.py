"""Moves what a job's pod left on shared storage into the job's result folder, and checks each file by its SHA-256.

`fairlead slurm install` writes it out beside the hooks' program, whose epilog runs it as the job's own user: nothing here is
ever done with more rights than the user has, so that no link or name that a job leaves behind can lead to others' files. It
needs Python 3.9 and the standard library.

Standard input: one JSON object in one line (`from`, `to`, `until`, `summary`), then the pod's output to its end. Standard
output: one JSON object, the summary with what was found. A file is removed from where it was only once all of them lie in
the result folder and have been read there again.
"""

from __future__ import annotations  # for Pythons that Slurm's hosts have

import hashlib
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import BinaryIO

MANIFEST, SUMMARY, OUTPUT = "fairlead.sha256", "fairlead-summary.json", "fairlead-output.log"
OWN_MANIFEST = "SHA256SUMS"
"""Manifest that the job's program may write itself; the files are then compared with it."""
PARTIAL = ".fairlead-partial"
_PIECE = 2**20
_NAMED = 20
"""Number of names that a summary holds, at most, of files in each kind of trouble."""


class MoveError(Exception):
    """The move failed and the results stay where they are; says why."""


class ResultMove:
    """A move of one job's results.

    Args:
        source: folder of the results, as this host has it.
        target: the result folder; what lies there is never overwritten.
        until: end of its time, by the monotonic clock.
    """

    def __init__(self, source: Path, target: Path, until: float) -> None:
        self._source = source
        self._target = target
        self._until = until
        self._digests: dict[str, str] = {}
        self._bytes = 0
        self._links: list[str] = []
        self._left: list[str] = []

    def run(self) -> dict[str, object]:
        """Move all results; returns a summary.

        Raises:
            MoveError: nothing was moved.
            OSError: nothing was moved either.
        """
        found = sorted(self._found())
        partial = self._target / PARTIAL
        self._target.mkdir(parents=True, exist_ok=True)
        _remove_tree(partial)
        try:
            for name in found:
                self._bring(name, partial / name)
            wrong = self._against_own_manifest()
            self._put_in_place(found, partial)
        finally:
            _remove_tree(partial)
        self._write_manifest()
        self._empty_source(found)
        return {
            "files": len(self._digests),
            "bytes": self._bytes,
            "links": len(self._links),
            "left_behind": self._left[:_NAMED],
            "not_as_its_own_manifest": wrong[:_NAMED],
            "manifest": str(self._target / MANIFEST),
        }

    def _found(self) -> list[str]:
        """Files and links below the source, by their relative names; what is neither stays there."""
        if not stat.S_ISDIR(self._source.stat().st_mode):
            raise MoveError(f"{self._source} is no folder")
        names = []
        for folder, folders, files in os.walk(self._source, onerror=_raised):
            for name in (*folders, *files):
                path = Path(folder, name)
                mode = path.lstat().st_mode
                relative = str(path.relative_to(self._source))
                if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                    names.append(relative)
                elif not stat.S_ISDIR(mode):
                    self._left.append(relative)
        return names

    def _bring(self, name: str, partial: Path) -> None:
        source = self._source / name
        if os.path.lexists(self._target / name):
            raise MoveError(f"{self._target / name} is there already")
        partial.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            partial.symlink_to(source.readlink())
            self._links.append(name)
            return
        wanted = None
        try:
            os.link(source, partial, follow_symlinks=False)  # of one file system: nothing is copied
        except OSError:
            wanted = self._copied(source, partial)
        digest, size = self._digest(partial)
        if wanted not in (None, digest):
            raise MoveError(f"{name} was not the same after it had been copied")
        self._digests[name] = digest
        self._bytes += size

    def _copied(self, source: Path, partial: Path) -> str:
        """Copy a file; returns the digest of what was read, and so of what the disk now holds."""
        digest = hashlib.sha256()
        reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(reading, "rb") as there, partial.open("xb") as here:
            before = os.fstat(reading)
            while piece := self._piece(there):
                digest.update(piece)
                here.write(piece)
            here.flush()
            os.fsync(here.fileno())
            after = os.fstat(reading)
            os.fchmod(here.fileno(), stat.S_IMODE(before.st_mode))
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise MoveError(f"{source} was written while it was copied")
        return digest.hexdigest()

    def _digest(self, path: Path) -> tuple[str, int]:
        digest, size = hashlib.sha256(), 0
        with path.open("rb") as file:
            while piece := self._piece(file):
                digest.update(piece)
                size += len(piece)
        return digest.hexdigest(), size

    def _piece(self, file: BinaryIO) -> bytes:
        if time.monotonic() > self._until:
            raise MoveError("the time of the epilog is over")
        return file.read(_PIECE)

    def _against_own_manifest(self) -> list[str]:
        """Files that are not as the job's program said, or missing."""
        if OWN_MANIFEST not in self._digests:
            return []
        lines = (self._target / PARTIAL / OWN_MANIFEST).read_text("utf-8", "surrogateescape").splitlines()
        said = dict(filter(None, map(_read_line, lines)))
        return sorted(name for name, digest in said.items() if self._digests.get(name) != digest)

    def _put_in_place(self, names: list[str], partial: Path) -> None:
        for name in names:
            target = self._target / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (partial / name).rename(target)

    def _write_manifest(self) -> None:
        lines = [_line(name, digest) for name, digest in sorted(self._digests.items())]
        _write(self._target / MANIFEST, "".join(lines).encode("utf-8", "surrogateescape"))

    def _empty_source(self, names: list[str]) -> None:
        """Remove each file from the source, then the folders that are empty."""
        for name in names:
            (self._source / name).unlink()
        for folder, _, _ in os.walk(self._source, topdown=False):
            if not any(Path(folder).iterdir()):
                Path(folder).rmdir()


def main() -> int:
    """Moves the results as the job's user. Whatever fails, the summary says it."""
    wanted = json.loads(sys.stdin.buffer.readline())
    summary: dict[str, object] = dict(wanted["summary"])
    target = Path(wanted["to"])
    os.umask(0o027)
    try:
        target.mkdir(parents=True, exist_ok=True)
        summary["output_bytes"] = _keep_output(target, sys.stdin.buffer)
        if wanted.get("from"):
            summary["results"] = ResultMove(Path(wanted["from"]), target, float(wanted["until"])).run()
    except (MoveError, OSError, ValueError) as error:
        summary["trouble"] = str(error)
    text = json.dumps(summary, indent=2, sort_keys=True)
    try:
        _write(target / SUMMARY, text.encode() + b"\n")
    except OSError as error:
        summary.setdefault("trouble", str(error))
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0


def _keep_output(target: Path, given: BinaryIO) -> int:
    """Keeps the pod's output as Kubernetes had it; the job's own file may have less, where its process was killed."""
    size = 0
    with (target / OUTPUT).open("wb") as file:
        while piece := given.read(_PIECE):
            size += len(piece)
            file.write(piece)
    return size


def _write(path: Path, content: bytes) -> None:
    """Write the file whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def _line(name: str, digest: str) -> str:
    """A line as sha256sum writes it, which marks lines with escapes by a backslash in front."""
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{'' if escaped == name else chr(92)}{digest}  {escaped}\n"


def _read_line(line: str) -> tuple[str, str] | None:
    escaped = line.startswith("\\")
    digest, mark, name = line.lstrip("\\").partition(" ")
    if not mark or not name:
        return None
    name = name[1:]  # a blank, or the star of binary mode
    if escaped:
        name = name.replace("\\\\", "\0").replace("\\n", "\n").replace("\\r", "\r").replace("\0", "\\")
    return os.path.normpath(name), digest.lower()


def _remove_tree(folder: Path) -> None:
    """Removes a folder of this program's own making: no link is followed."""
    for inner, folders, files in os.walk(folder, topdown=False):
        for name in files:
            Path(inner, name).unlink()
        for name in folders:
            path = Path(inner, name)
            if path.is_symlink():
                path.unlink()
            else:
                path.rmdir()
    if folder.is_dir() and not folder.is_symlink():
        folder.rmdir()


def _raised(error: OSError) -> None:
    raise error


if __name__ == "__main__":
    sys.exit(main())
