"""Binaries and manifests of the lab, built once from Go modules and kept by the content of what they are built from.

The versions are those of `binaries/go.mod`; its `go.sum` vouches for every module. A finished folder is never changed:
it is built beside its place and renamed into it, under a lock, so that two builds at once do no harm and a run that
finds it needs neither Go nor a network.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fairlead_testkit.kubelab.errors import BuildError, GoMissingError
from fairlead_testkit.kubelab.toolsets import CURRENT, Toolset

MODULES = Path(__file__).parent
EXPECTED = "some minutes; seven for all of Kubernetes on two idle cores, 20 on busy ones"
SAID_EVERY_SECONDS = 10.0
_MINUTE = 60.0
_LAYOUT = "1"
"""Raised when what a folder of the cache holds changes without a change of the tool set."""

type Report = Callable[[str], None]
"""Function that is told what is being done, a line each."""


@dataclass(frozen=True)
class Kit:
    """A finished folder: `bin/` with the binaries, `manifests/` with the YAML that belongs to them.

    Attributes:
        folder: the kit's folder.
        rest: holds what this one does not.
    """

    folder: Path
    rest: "Kit | None" = None

    def binary(self, name: str) -> Path:
        """The path of a binary."""
        return self._holder(Path("bin", name)) / "bin" / name

    def manifests(self, name: str) -> list[Path]:
        """The YAML files of one group, as `kueue-crds`, in the order of their names."""
        return sorted((self._holder(Path("manifests", name)) / "manifests" / name).glob("*.yaml"))

    def _holder(self, part: Path) -> Path:
        return self.folder if self.rest is None or (self.folder / part).exists() else self.rest.folder

    @classmethod
    def found(cls, toolset: Toolset = CURRENT) -> Self | None:
        """The kit of this tool set, where it was built before."""
        folder = _place(toolset)
        return cls(folder) if folder.is_dir() else None


def build(toolset: Toolset = CURRENT, report: Report | None = None) -> Kit:
    """The kit of this tool set; built first where that was not done yet: seven minutes on two idle cores, twenty on busy ones.

    Raises:
        GoMissingError: Go is missing, and the kit has to be built.
        BuildError: Go failed.
    """
    found = Kit.found(toolset)
    if found is not None:
        return found
    if shutil.which("go") is None:
        raise GoMissingError(
            f"the lab's {', '.join(toolset.binaries)} are built once, with Go {_go_version(toolset)} or newer, which is "
            "not on the PATH: install it (https://go.dev/doc/install), then `make lab-build`"
        )
    place = _place(toolset)
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.with_suffix(".lock")):
        if not place.is_dir():  # another build may have been faster
            _build_into(place, toolset, report or _to_stderr)
    return Kit(place)


def _place(toolset: Toolset) -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "fairlead" / "kubelab" / _content_hash(toolset)


def _content_hash(toolset: Toolset) -> str:
    """The hash of all that decides what is built. Go's version is the one that go.mod asks for: no Go is needed for it."""
    digest = hashlib.sha256()
    module = MODULES / toolset.folder
    for part in (
        (module / "go.mod").read_bytes(),
        (module / "go.sum").read_bytes(),
        *(source.read_bytes() for source in sorted(module.glob("*.go"))),
        repr((_LAYOUT, toolset, platform.system(), platform.machine())).encode(),
    ):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:20]


def _go_version(toolset: Toolset) -> str:
    lines = (MODULES / toolset.folder / "go.mod").read_text().splitlines()
    return next(line.removeprefix("go ") for line in lines if line.startswith("go "))


def _build_into(place: Path, toolset: Toolset, report: Report) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    began = time.monotonic()
    try:
        _build_binaries(unfinished / "bin", toolset, report)
        _collect_manifests(unfinished / "manifests", toolset)
        (unfinished / "built-with.txt").write_text(_go(["version"], place.parent))
        unfinished.chmod(0o755)
        unfinished.rename(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    report(f"built in {_spell(time.monotonic() - began)}: {place}")


def _build_binaries(target: Path, toolset: Toolset, report: Report) -> None:
    target.mkdir()
    number = len(toolset.binaries)
    report(
        f"building {number} binaries with {_go(['version'], target.parent).strip()}: once, {EXPECTED}; kept in {target.parent.parent}"
    )
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in toolset.stamps.items())])
    for count, (name, package) in enumerate(toolset.binaries.items(), 1):
        began = time.monotonic()
        report(f"building {name} ({count} of {number})")
        arguments = [
            "build",
            "-v",  # says each package as it is compiled
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            flags,
            "-o",
            str(target / name),
            package,
        ]
        compiled = _Progress(name, report)
        _go(arguments, MODULES / toolset.folder, heard=compiled.heard)
        report(f"  {name}: {compiled.packages} packages compiled, {_spell(time.monotonic() - began)}")


class _Progress:
    """Says now and then how far Go is: a compiler that is silent for minutes looks like one that hangs."""

    def __init__(self, name: str, report: Report) -> None:
        self.packages = 0
        self._name = name
        self._report = report
        self._began = self._said = time.monotonic()

    def heard(self, line: str) -> None:
        """Hears a line of Go's: a package, or what it loads."""
        if line.startswith("go: "):
            return
        self.packages += 1
        now = time.monotonic()
        if now - self._said >= SAID_EVERY_SECONDS:
            self._said = now
            self._report(f"  {self._name}: {self.packages} packages so far, {_spell(now - self._began)}")


def _spell(seconds: float) -> str:
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s" if seconds >= _MINUTE else f"{seconds:.0f} s"


def _collect_manifests(target: Path, toolset: Toolset) -> None:
    for manifests in toolset.manifests:
        folder = target / manifests.group
        folder.mkdir(parents=True, exist_ok=True)
        module = _module_folder(manifests.module, manifests.version, manifests.checksum, toolset)
        files = sorted(module.glob(manifests.pattern))
        if not files:
            raise BuildError(f"{manifests.module} holds no {manifests.pattern}")
        for file in files:
            shutil.copyfile(file, folder / file.name)


def _module_folder(module: str, version: str | None, checksum: str | None, toolset: Toolset) -> Path:
    """The folder of a module's files: one of go.mod, or, with a version, one of which nothing but files is wanted."""
    if version is None:
        return Path(_go(["list", "-m", "-f", "{{.Dir}}", module], MODULES / toolset.folder).strip())
    with (
        tempfile.TemporaryDirectory() as outside
    ):  # in the folder of go.mod it would be about that module's own needs
        said = json.loads(_go(["mod", "download", "-json", f"{module}@{version}"], Path(outside)))
    if said.get("Sum") != checksum:
        raise BuildError(f"{module}@{version} has the checksum {said.get('Sum')}, not {checksum}")
    return Path(said["Dir"])


def _go(arguments: list[str], folder: Path, heard: Report | None = None) -> str:
    """Run Go; gives what it printed. `heard` is told each line of its standard error when it comes."""
    environ = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off", "GO111MODULE": "on"}
    with (
        tempfile.TemporaryFile("w+") as printed,
        subprocess.Popen(  # noqa: S603 # Go, from the PATH of whoever runs the lab, with our own arguments
            ["go", *arguments],  # noqa: S607 # as above
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=printed,  # a file: nobody reads it while the other is read
            stderr=subprocess.PIPE,
            text=True,
        ) as going,
    ):
        assert going.stderr is not None  # noqa: S101 # it is a pipe
        said = []
        for line in going.stderr:
            said.append(line)
            if heard is not None:
                heard(line.rstrip())
        code = going.wait()
        printed.seek(0)
        output = printed.read()
    if code != 0:
        raise BuildError(f"go {' '.join(arguments)} failed:\n{(''.join(said) or output)[-4000:]}")
    return output


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file, also by a kill
        yield


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
