"""`make faults`: makes known faults one by one in a copy of the code, and sees a test fail for each.

A fault is a text that is found exactly once in the sources of the members, what stands there instead, and the test
files that should notice (`*.toml` beside this file). It names no folder and no source file, so that a module may move; a
fault whose text or whose tests are gone ends the run in red, as does one that no test notices: mend the fault, or the
tests.

    .venv/bin/python tests/faults/run.py [words of a fault's name]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import msgspec

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MEMBERS = sorted(
    path.parent for top in ("libs", "services") for path in (ROOT / top).glob("*/pyproject.toml")
)
SIDE_BY_SIDE = 2
_PASSED, _FAILED = 0, 1
_SHOWN = 1500


class KnownFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change that must not pass."""

    name: str
    find: str
    replace: str
    tests: list[str]


class KnownFaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The faults in a file."""

    fault: list[KnownFault]


class NotAppliedError(Exception):
    """The text of a fault is not there, or in more than one place."""


class Copy:
    """The code without its history, to break and to mend again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        skipped = shutil.ignore_patterns(".git", ".venv", ".mypy_cache", ".hypothesis", "__pycache__")
        shutil.copytree(ROOT, folder, ignore=skipped)
        self._sources = [folder / member.relative_to(ROOT) / "src" for member in MEMBERS]

    def tests_end(self, tests: list[str]) -> tuple[int, str]:
        """Run tests, until the first that fails; gives pytest's exit code and the end of what it printed."""
        paths = [str(path) for test in tests for path in self._files(test)]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not deep",
            *paths,
        ]
        inherited = {key: value for key, value in os.environ.items() if key != "CI"}
        environ = inherited | {
            "PYTHONPATH": os.pathsep.join(map(str, self._sources)),
            "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
            "HYPOTHESIS_PROFILE": "ci",  # the cases of CI
        }
        done = subprocess.run(  # our own tests
            command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False
        )
        return done.returncode, (done.stdout + done.stderr)[-_SHOWN:]

    def _files(self, test: str) -> list[Path]:
        """A test file by its name, wherever it is.

        Raises:
            NotAppliedError: there is no such file.
        """
        tests = (self.folder / member.relative_to(ROOT) / "tests" for member in MEMBERS)
        found = [path for folder in tests for path in folder.rglob(test)]
        if not found:
            raise NotAppliedError(f"there is no test file {test}")
        return found

    def with_fault(self, fault: KnownFault) -> tuple[int, str]:
        """Runs tests as `tests_end`, with a fault in the code.

        Raises:
            NotAppliedError: there is no single place for it, or no such test.
        """
        found = {
            path: text
            for source in self._sources
            for path in source.rglob("*.py")
            if fault.find in (text := path.read_text())
        }
        places = sum(text.count(fault.find) for text in found.values())
        if places != 1:
            raise NotAppliedError(f"its text is in {places} places: {', '.join(map(str, found))}")
        [(path, text)] = found.items()
        path.write_text(text.replace(fault.find, fault.replace))
        try:
            return self.tests_end(fault.tests)
        finally:
            path.write_text(text)


def judged(fault: KnownFault, copies: "Queue[Copy]") -> str:
    """The trouble with a fault; empty where a test noticed it."""
    copy = copies.get()
    began = time.monotonic()
    try:
        code, printed = copy.with_fault(fault)
    except NotAppliedError as error:
        wrong = f"not applied: {error}"
    else:
        wrong = {_FAILED: "", _PASSED: "no test noticed"}.get(code, f"pytest ended with {code}:\n{printed}")
    finally:
        copies.put(copy)
    sys.stdout.write(f"{time.monotonic() - began:6.1f} s  {wrong or 'noticed'}: {fault.name}\n")
    sys.stdout.flush()
    return wrong


def main(words: list[str]) -> int:
    """Try all faults, or those with these words in their names; gives the exit code."""
    read = [tomllib.loads(path.read_text()) for path in sorted(HERE.glob("*.toml"))]
    faults = [fault for one in read for fault in msgspec.convert(one, KnownFaults).fault]
    faults = [fault for fault in faults if all(word in fault.name for word in words)]
    if not faults:
        sys.stdout.write(f"no fault has {' and '.join(words)} in its name\n")
        return 1
    copies: Queue[Copy] = Queue()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for number in range(SIDE_BY_SIDE):
            copies.put(Copy(Path(folder) / str(number)))
        tests = sorted({test for fault in faults for test in fault.tests})
        code, printed = copies.queue[0].tests_end(tests)
        if code != _PASSED:
            sys.stdout.write(f"without any fault, tests fail:\n{printed}\n")
            return 1
        pool = ThreadPoolExecutor(SIDE_BY_SIDE)
        try:
            wrong = [found for found in pool.map(lambda fault: judged(fault, copies), faults) if found]
        finally:
            pool.shutdown(cancel_futures=True)  # who ends it with Ctrl-C waits for two of them, not for all
    sys.stdout.write(f"{len(faults) - len(wrong)} of {len(faults)} faults noticed\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
