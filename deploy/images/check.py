"""Builds the image and starts docker-compose.yml with a local engine, looks at what runs, and takes it away again.

    make images-check

Needs an engine (`docker info`), and a base image with Python 3.13: where none can be pulled, `deploy/images/base.sh`
makes one by hand. docker-compose is the one on the PATH, else it is built with Go. Of the monitoring
profile only what the engine has images of is started. Prints a line for each thing seen; exit 1 where one is not so.

FAIRLEAD_BASE: the base image. BUILD_OPTIONS: more options of `docker build`, as `--network host`.
"""

import contextlib
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROJECT = "fairlead-images-check"
LABEL = "com.docker.compose.project"
IMAGE = "fairlead:images-check"
MONITORING = {"tempo": "TEMPO_IMAGE", "prometheus": "PROMETHEUS_IMAGE", "grafana": "GRAFANA_IMAGE"}
SLURM_CONF = """ClusterName=none
SlurmctldHost=localhost
SlurmUser=slurm
NodeName=none
PartitionName=none Nodes=none
"""
WAIT_SECONDS = 300
ORDERED_SECONDS = 240
SCRAPED_SECONDS = 60


class Failed(Exception):  # noqa: N818 # what is printed, not what is caught by callers
    """A part of the image or its containers is not as it should be."""


def main() -> int:
    """Checks all of it, in order."""
    try:
        size = build()
        say("image", f"{size / 1e6:.0f} MB beside its base")
        with_slurm()
        try:
            services = start()
            for look in (not_root, read_only, ordered, scraped):
                look(services)
        finally:
            compose("down", "--volumes", "--timeout", "20")
    except Failed as error:
        sys.stderr.write(f"images-check: {error}\n")
        return 1
    return 0


def build() -> int:
    """Builds the image; returns the bytes that it adds to its base."""
    base = os.environ.get("FAIRLEAD_BASE", "python:3.13-slim")
    if shutil.which("docker") is None or run("docker", "info", check=False).returncode:
        raise Failed("no engine answers `docker info`: start one, or name it in DOCKER_HOST")
    if run("docker", "image", "inspect", base, check=False).returncode:
        pulled = run("docker", "pull", base, check=False)
        if pulled.returncode:
            raise Failed(f"no base image: {pulled.stderr.strip()}; deploy/images/base.sh makes one by hand")
    began = time.monotonic()
    more = shlex.split(os.environ.get("BUILD_OPTIONS", ""))
    run("docker", "build", *more, "--build-arg", f"BASE={base}", "--tag", IMAGE, str(ROOT))
    say("built", f"{time.monotonic() - began:.0f} s")
    return size_of(IMAGE) - size_of(base)


def with_slurm() -> None:
    """Builds the image that has Slurm's commands, too, and checks that they start as its user on a read-only root file system."""
    base = os.environ.get("FAIRLEAD_BASE", "python:3.13-slim")
    more = shlex.split(os.environ.get("BUILD_OPTIONS", ""))
    tag = f"{IMAGE}-slurm"
    run("docker", "build", *more, "--build-arg", f"BASE={base}", "--target", "slurm", "--tag", tag, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "slurm.conf").write_text(SLURM_CONF)  # without one its commands do not start
        mount = ("--volume", f"{folder}:/etc/slurm:ro")
        alone = (
            "docker",
            "run",
            "--rm",
            "--read-only",
            "--network",
            "none",
            "--cap-drop",
            "ALL",
            *mount,
            tag,
        )
        version = run(*alone, "squeue", "--version").stdout.strip()
        run(*alone, "python", "-m", "fairlead_slurm_bridge", "--help")
        user = run(*alone, "id", "-u").stdout.strip()
    if user == "0":
        raise Failed(f"{tag} runs as root")
    say("slurm", f"{version} as user {user}, {(size_of(tag) - size_of(IMAGE)) / 1e6:.0f} MB more")


def size_of(image: str) -> int:
    """Bytes of all layers."""
    return int(run("docker", "image", "inspect", "--format", "{{.Size}}", image).stdout)


def start() -> dict[str, dict[str, object]]:
    """Start what can be started and wait until all is healthy; gives docker's own account of each container."""
    names = json.loads(compose("config", "--format", "json").stdout)["services"]
    absent = {
        name
        for name in MONITORING
        if name in names and run("docker", "image", "inspect", names[name]["image"], check=False).returncode
    }
    for name in sorted(absent):
        say("not run", f"{name}: no image {names[name]['image']}")
    if "tempo" in absent:
        os.environ["FAIRLEAD_OTEL_ENDPOINT"] = ""  # nobody takes traces
    wanted = sorted(set(names) - absent)
    began = time.time()
    begun = compose("up", "--detach", "--no-build", *wanted, check=False)
    if begun.returncode:
        raise Failed(f"{begun.stderr.splitlines()[-1]}\n{unwell()}")
    until_healthy(began)
    say("healthy", f"{time.time() - began:.0f} s after the start")
    listed = run("docker", "ps", "--quiet", "--filter", f"label={LABEL}={PROJECT}").stdout.split()
    found = json.loads(run("docker", "inspect", *listed).stdout)
    return {one["Name"].strip("/"): one for one in found}


def unwell() -> str:
    """The last words of the health checks of containers that are not healthy."""
    states = [json.loads(line) for line in compose("ps", "--format", "json").stdout.splitlines()]
    said = [
        run("docker", "inspect", "--format", "{{.Name}} {{json .State.Health.Log}}", one["Name"]).stdout[
            -1500:
        ]
        for one in states
        if one["Health"] not in {"", "healthy"}
    ]
    return "".join(said)


def until_healthy(began: float) -> None:
    """Waits until every container that has a health check passes it; looks again with each event of the engine since."""
    waiting: list[str] = []
    events = ("docker", "events", "--since", f"{began:.0f}", "--filter", f"label={LABEL}={PROJECT}")
    with told_by(*events, "--filter", "event=start", "--filter", "event=health_status", seconds=WAIT_SECONDS) as told:  # fmt: skip
        for _ in told:
            states = [json.loads(line) for line in compose("ps", "--format", "json").stdout.splitlines()]
            waiting = [
                one["Name"]
                for one in states
                if one["Health"] not in {"", "healthy"} or one["State"] != "running"
            ]
            if states and not waiting:
                return
    raise Failed(
        f"after {WAIT_SECONDS} s these are not healthy: {', '.join(waiting)}; {how_busy()}\n{unwell()}{last_said()}"
    )


def not_root(services: dict[str, dict[str, object]]) -> None:
    """Checks that no process of any container belongs to root."""
    for name in services:
        users = run("docker", "top", name, "-eo", "pid,uid,args").stdout.splitlines()[1:]
        if not users or any(line.split()[1] == "0" for line in users):
            raise Failed(f"{name} runs as root: {users}")
    say("users", f"no process of {len(services)} containers is root's")


def read_only(services: dict[str, dict[str, object]]) -> None:
    """Checks that nothing can be written where the image's files are."""
    for name in services:
        written = run("docker", "exec", name, "touch", "/opt/x", check=False)
        if written.returncode == 0 or "Read-only" not in written.stderr:
            raise Failed(f"{name}: its root file system can be written: {written.stderr}")
    say("files", "all root file systems are read-only")


def ordered(services: dict[str, dict[str, object]]) -> None:
    """Checks that jobs of the demo had to wait, were ordered, and have levels: the admitter says so. An operator's key shows the order."""
    del services
    began = time.monotonic()
    logs = compose_words("logs", "--no-log-prefix", "--no-color", "--follow", "sim-admitter")
    with told_by(*logs, seconds=ORDERED_SECONDS) as told:
        if not any(is_level(line) for line in told):
            raise Failed(
                f"for {ORDERED_SECONDS} s after all was healthy no level was written: either no job waits "
                f"(`jobs` publishes them, `sim` runs them) or nobody orders them (`scorer`); {how_busy()}\n{last_said()}"
            )
    say("level", f"the first was written {time.monotonic() - began:.0f} s after this look began")
    asked = compose("run", "--rm", "-T", "fairlead", "queue", "-o", "json", check=False)
    jobs = sum(pool["waiting"] for pool in json.loads(asked.stdout)["pools"]) if asked.returncode == 0 else 0
    if not jobs:
        raise Failed(
            f"levels are written, and `fairlead queue` shows no waiting job (exit code {asked.returncode}); {how_busy()}\n"
            f"{asked.stdout[-500:]}{asked.stderr[-500:]}{last_said()}"
        )
    say("queue", f"{jobs} jobs wait in an order, {time.monotonic() - began:.0f} s after this look began")


def is_level(line: str) -> bool:
    """Whether a line of an admitter's log tells of a level that it wrote."""
    return line.startswith("{") and json.loads(line).get("event") == "level"


def how_busy() -> str:
    """The machine's load, which a reader of a failure needs to know."""
    return f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors"


def last_said() -> str:
    """The end of every container's log."""
    return compose("logs", "--no-color", "--tail", "8", check=False).stdout[-6000:]


def scraped(services: dict[str, dict[str, object]]) -> None:
    """Checks that Prometheus, where it runs, finds every service by its name and reads its metrics and our rules."""
    if not any("-prometheus-" in name for name in services):
        return
    address = compose("port", "prometheus", "9090").stdout.strip()
    wanted = sum(any(f"-{one}-" in name for one in ("scorer", "sim", "sim-admitter")) for name in services)
    began = time.monotonic()
    while True:
        targets = asked_of(address, "/api/v1/targets")["activeTargets"]
        up = [one["labels"]["service"] for one in targets if one["health"] == "up"]
        if len(up) >= wanted:
            break
        if time.monotonic() - began > SCRAPED_SECONDS:
            raise Failed(f"{wanted} services are to be scraped: {[one['lastError'] for one in targets]}")
        time.sleep(1)
    rules = sum(len(group["rules"]) for group in asked_of(address, "/api/v1/rules")["groups"])
    say("scraped", f"{len(up)} services ({', '.join(sorted(up))}), {rules} rules")


def asked_of(address: str, path: str) -> dict[str, list[dict[str, Any]]]:
    """The answer of Prometheus' API."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:  # our own container
        found: dict[str, list[dict[str, Any]]] = json.load(answer)["data"]
    return found


ENVIRON = {
    "FAIRLEAD_IMAGE": IMAGE,
    "FAIRLEAD_NATS_PORT": "0",
    "FAIRLEAD_PROMETHEUS_PORT": "0",
    "FAIRLEAD_GRAFANA_PORT": "0",
    "FAIRLEAD_LOG_LEVEL": "debug",  # the admitter tells of each level
}


def compose(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs docker-compose on our file, as a project of its own."""
    return run(*compose_words(*words), check=check)


def compose_words(*words: str) -> list[str]:
    """The command line of docker-compose on our file."""
    return [program(), "--project-name", PROJECT, *words]


@functools.cache
def program() -> str:
    """The docker-compose of this machine, or one that is built with Go."""
    found = shutil.which("docker-compose")
    if found is not None:
        return found
    from fairlead_testkit.kubelab.building import build as build_kit  # only here
    from fairlead_testkit.kubelab.toolsets import COMPOSE

    return str(build_kit(COMPOSE).binary("docker-compose"))


@contextlib.contextmanager
def told_by(*words: str, seconds: float) -> Iterator[Iterator[str]]:
    """The lines of a command that goes on, each as it comes; they end with it, or after so many seconds."""
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        env=os.environ | ENVIRON,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    end = threading.Timer(seconds, process.kill)
    end.start()
    try:
        yield iter(process.stdout or ())
    finally:
        end.cancel()
        process.kill()
        process.wait()


def run(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a command; what it said is shown where it must not fail and does."""
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | ENVIRON, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        raise Failed(f"{shlex.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


def say(what: str, how: str) -> None:
    """A line of the report."""
    sys.stdout.write(f"{what:<9} {how}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
