"""`fairlead nats provision`, and what services say on a server where nobody did that."""

import subprocess
from pathlib import Path

import pytest

from fairlead_contracts.topology import topology
from fairlead_testkit import NatsServer, ServiceProcess
from fairlead_testkit.processes.command import fairlead

pytestmark = pytest.mark.integration


def provision(server: NatsServer, *words: str) -> subprocess.CompletedProcess[str]:
    return fairlead("nats", "provision", *words, "--nats", server.url, environ={})


def test_it_makes_what_is_missing_says_so_and_again_changes_nothing(nats_server: NatsServer) -> None:
    looked = provision(nats_server, "east", "--dry-run")
    everything = topology(["east"])
    parts = len(everything.streams) + len(everything.buckets) + len(everything.durables)
    assert looked.returncode == 1, looked.stderr
    assert looked.stdout.splitlines()[0] == "stream state: missing"
    assert len(looked.stdout.splitlines()) == parts

    made = provision(nats_server, "east")
    assert (made.returncode, made.stdout) == (0, looked.stdout.replace("missing", "created"))

    again = provision(nats_server, "east")
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing is missing, nothing differs" in again.stderr
    assert provision(nats_server, "east", "--dry-run").returncode == 0

    added = provision(nats_server, "west")
    assert added.returncode == 0, added.stderr
    assert [line.partition(":")[0] for line in added.stdout.splitlines()] == [
        "stream submit",
        "durable submit/submit-west",
        "durable event/answers-west",
    ]
    assert provision(nats_server, "east", "west", "--dry-run").returncode == 0


def test_what_the_server_refuses_is_told_and_the_rest_is_made(nats_server: NatsServer) -> None:
    assert provision(nats_server, "east").returncode == 0
    refused = provision(nats_server, "east", "west", "--replicas", "3")
    assert refused.returncode == 1
    assert "stream state: num_replicas 1 -> 3: refused by NATS" in refused.stderr
    assert "durable event/answers-west: created" in refused.stdout


def test_an_operator_limits_streams(nats_server: NatsServer) -> None:
    made = provision(
        nats_server, "east", "--max-bytes", "event=20Gi", "--max-bytes", "state=1Gi", "--max-age", "event=3d"
    )
    assert made.returncode == 0, made.stderr
    changed = provision(nats_server, "east", "--max-bytes", "event=10Gi", "--dry-run")
    assert changed.stdout == "stream event: max_bytes 21474836480 -> 10737418240\n"
    freed = provision(
        nats_server, "east", "--max-bytes", "event=none", "--max-bytes", "answer=none", "--dry-run"
    )
    assert freed.stdout == "stream event: max_bytes 21474836480 -> -1\n"
    for wrong in (
        ["--max-bytes", "event"],
        ["--max-bytes", "event=much"],
        ["--max-bytes", "event=-1"],
        ["--max-age", "state=1d"],
    ):
        found = provision(nats_server, "east", *wrong)
        assert found.returncode == 2, wrong
        assert wrong[1].partition("=")[0] in found.stderr


def test_a_cluster_that_cannot_be_called_so_is_wrong_input(nats_server: NatsServer) -> None:
    wrong = provision(nats_server, "any")
    assert wrong.returncode == 2
    assert "a cluster needs a name of its own" in wrong.stderr


@pytest.mark.parametrize(
    ("service", "settings", "words"),
    [
        ("scorer", {}, "`fairlead nats provision CLUSTER...`"),
        ("admitter", {"cluster": "west"}, "`fairlead nats provision west`"),
        ("sim", {"cluster": "west"}, "`fairlead nats provision CLUSTER...`"),
        ("watcher", {"cluster": "west"}, "`fairlead nats provision CLUSTER...`"),
    ],
)
async def test_a_service_on_a_bare_server_names_the_command_instead_of_a_traceback(
    nats_server: NatsServer, tmp_path: Path, service: str, settings: dict[str, object], words: str
) -> None:
    if service == "watcher":
        settings |= {"kubeconfig": _nowhere(tmp_path)}
    if service == "sim":
        settings |= {"store": tmp_path / "sim.sqlite"}
    with ServiceProcess(service, tmp_path, {"nats_url": nats_server.url, **settings}) as process:
        assert await process.ended(60.0) == 1
    assert words in process.log
    assert "Traceback" not in process.log
    assert [event["event"] for event in process.events()].count("failed") <= len(
        ("policy", "members", "state")
    )


def _nowhere(folder: Path) -> Path:
    """A kubeconfig of a cluster that does not answer."""
    path = folder / "kubeconfig"
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
    )
    return path


async def test_an_admitter_of_a_cluster_that_was_never_named_says_so_at_once(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    assert provision(nats_server, "east").returncode == 0
    with ServiceProcess("admitter", tmp_path, {"nats_url": nats_server.url, "cluster": "west"}) as process:
        assert await process.ended(60.0) == 1
    [failed] = [event for event in process.events() if event["event"] == "failed"]
    assert failed["error"] == (
        "this NATS server has no durable submit/submit-west: `fairlead nats provision west` makes it"
    )


async def test_a_server_that_lets_nobody_in_is_told_without_a_traceback(tmp_path: Path) -> None:
    settings = {"nats_url": "nats://127.0.0.1:9", "nats_connect_timeout_seconds": 0.5}
    with ServiceProcess("scorer", tmp_path, settings) as process:
        assert await process.ended(60.0) == 1
    assert "no connection to nats://127.0.0.1:9" in process.log
    assert "Traceback" not in process.log
