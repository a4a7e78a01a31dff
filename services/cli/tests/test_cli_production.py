"""docs/production.md, followed to the letter: its commands, in its order, on a real nats-server, Kubernetes and Kueue.

The services have what the page gives them: users and accounts of NATS, service accounts of Kubernetes.
"""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fairlead_bus.server.program import server_program
from fairlead_testkit.kubelab import KubeLab, LabOptions, things
from fairlead_testkit.processes.free_ports import await_listening, free_ports
from fairlead_testkit.pytest_plugin.kubelab_fixtures import LabFactory

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "production.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ADDRESSES = ("KUBECONFIG",)
SERVICE = re.compile(r"(env \S+ \S+ )?python -m fairlead_|fairlead watchdog |nats-server ")
SERVICE_NAME = re.compile(r"nats-server|fairlead_\w+|watchdog")
PORT = re.compile(r"\b(808\d|4222)\b")
END_SECONDS = 30
STEP_SECONDS = 150
ACCOUNT = "system:serviceaccount:fairlead:fairlead-"
WARNINGS_ALONE = 1
"""The doctor's exit code where no error is open: what a lab's Kueue leaves to warn of is no business of the page."""


class PageReader:
    """Somebody who follows the page: a shell, the terminals in which services run, and the reader's own addresses."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self.environ = dict(environ)
        self.services: dict[str, subprocess.Popen[bytes]] = {}
        self._ports: dict[str, str] = {}

    def follow(self, block: str) -> str:
        """Do what one block says; gives what was printed."""
        text = PORT.sub(lambda found: self._port(found[0]), block)
        if all(SERVICE.match(line) for line in text.splitlines()):
            for line in text.splitlines():
                self._start(line)
            return ""
        return self.run(text)

    def run(self, text: str, *, code: int = 0) -> str:
        """Runs a piece of shell that ends with the given code or better; what it exports stays."""
        kept = self.folder / "environ"
        done = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", f'trap "env -0 > {kept}" EXIT\n{text}'],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=STEP_SECONDS,
        )
        assert done.returncode <= code, f"{text}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        self.environ = dict(pair.split("=", 1) for pair in kept.read_text().split("\0") if pair)
        return done.stdout + done.stderr

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in self.folder.glob("*.log"))

    def end(self) -> list[int]:
        """SIGTERM to each of our own, while NATS is there; gives their exit codes."""
        ours = [service for name, service in self.services.items() if "nats-server" not in name]
        for service in ours:
            service.terminate()
        return [service.wait(END_SECONDS) for service in ours]

    def kill(self) -> None:
        for service in self.services.values():
            if service.poll() is None:
                service.kill()
                service.wait()

    def _start(self, line: str) -> None:
        name = f"{len(self.services)}-{SERVICE_NAME.findall(line)[0]}"
        with (self.folder / f"{name}.log").open("wb") as log:
            self.services[name] = subprocess.Popen(
                ["/bin/bash", "-c", f"exec {line}"],
                cwd=self.folder,
                env=self.environ,
                stdout=log,
                stderr=log,
            )
        if line.startswith("nats-server"):
            await_listening(int(self._port("4222")), STEP_SECONDS)  # a reader types slower than it starts

    def _port(self, shown: str) -> str:
        """A free one for each of the page's; the same throughout."""
        if shown not in self._ports:
            self._ports[shown] = str(free_ports(1)[0])
        return self._ports[shown]


def test_the_page_begins_with_the_readers_own_addresses() -> None:
    assert re.findall(r"^export (\w+)=", BLOCKS[0], re.MULTILINE) == list(ADDRESSES)


def test_every_file_that_the_page_names_is_there() -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", PAGE)
    assert targets
    assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []


@contextlib.contextmanager
def reader(folder: Path, lab: KubeLab) -> Iterator[PageReader]:
    (folder / "bin").mkdir()
    (folder / "bin" / "nats-server").symlink_to(server_program())
    (folder / "deploy").symlink_to(ROOT / "deploy")
    kubeconfig = folder / "admin.yaml"
    kubeconfig.write_text(lab.kubeconfig().read_text())
    kubeconfig.chmod(0o600)
    binaries = [
        str(folder / "bin"),
        str(Path(sys.executable).parent),
        str(lab.kit.binary("kubectl").parent),
        os.environ["PATH"],
    ]
    environ = {
        "PATH": os.pathsep.join(binaries),
        "HOME": str(folder),
        "KUBECONFIG": str(kubeconfig),
    }
    found = PageReader(folder, environ)
    try:
        yield found
    finally:
        found.kill()


@pytest.mark.kube
@pytest.mark.integration
@pytest.mark.timeout(480)
def test_following_the_page_runs_it_with_the_shipped_service_accounts(
    kube_labs: LabFactory, tmp_path: Path
) -> None:
    lab = kube_labs(LabOptions())
    lab.apply_examples()
    with reader(tmp_path, lab) as person:
        said = ""
        for block in BLOCKS[1:]:
            code = WARNINGS_ALONE if block.startswith("fairlead doctor") else 0
            said += person.run(block, code=code) if code else person.follow(block)
        assert "levels may be written from now on, by boost" in said
        assert "checker-rights-missing" not in said
        for account in ("watcher", "admitter", "checker", "check-watchdog"):
            whoami = person.run(f"kubectl --kubeconfig kubeconfigs/{account}.yaml auth whoami -o yaml")
            assert f"username: {ACCOUNT}{account}" in whoami
            assert "admin" not in (tmp_path / "kubeconfigs" / f"{account}.yaml").read_text()

        # More than the pool holds, of the lighter tenant first: the order is not that of arrival.
        files = [f"-f deploy/examples/kueue/{tenant}.yaml" for tenant in ("team-c",) * 10 + ("team-a",) * 3]
        person.run(f"kubectl create {' '.join(files)}")
        lab.until(lambda: boosted(lab), 90, "a level is written")
        lab.until(lambda: answered(lab), 90, "the checker answers")
        assert person.end() == [0] * 6, person.logs()


def answered(lab: KubeLab) -> list[str]:
    return [
        check["message"]
        for item in lab.api.items("/apis/kueue.x-k8s.io/v1beta2/workloads")
        for check in item.get("status", {}).get("admissionChecks", [])
        if check["state"] == "Ready" and "There is room for" in check["message"]
    ]


def boosted(lab: KubeLab) -> list[str]:
    return [
        item["metadata"]["name"]
        for item in lab.api.items("/apis/kueue.x-k8s.io/v1beta2/workloads")
        if item["metadata"].get("annotations", {}).get(things.PRIORITY_BOOST)
    ]
