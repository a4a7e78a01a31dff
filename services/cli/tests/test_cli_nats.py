"""`fairlead nats provision` and `retire`, and what services say on a server where nobody did that."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead_bus import Bucket, Bus, ConnectionSettings, Mirror, NoStreamError, connect
from fairlead_contracts import subjects
from fairlead_contracts.messages.state import STATE, State
from fairlead_contracts.policyfile.read import encode_document
from fairlead_contracts.topology import MEMBERS, POLICY, topology
from fairlead_testkit import NatsServer, ServiceProcess, eventually
from fairlead_testkit.inputs.builders import a_weighted_policy
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


def test_a_limit_that_the_server_has_no_room_for_is_told_with_its_stream(nats_server: NatsServer) -> None:
    refused = provision(nats_server, "east", "--max-bytes", "event=20000Ti")
    assert refused.returncode == 1
    assert "stream event: cannot be made: refused by NATS: insufficient storage resources" in refused.stderr
    assert "durable submit/submit-east: created" in refused.stdout


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


class Retiring:
    """A NATS server with the clusters `east` and `west`, and what is known there as a scorer knows it."""

    def __init__(self, server: NatsServer, folder: Path, bus: Bus, facts: Mirror[State]) -> None:
        self.server, self.folder, self.bus, self.facts = server, folder, bus, facts
        self.policies, self.members = Bucket(bus, POLICY), Bucket(bus, MEMBERS)

    def start(self, cluster: str, store: str) -> ServiceProcess:
        settings = {"nats_url": self.server.url, "cluster": cluster, "store": self.folder / store}
        return ServiceProcess("sim", self.folder, settings, name=f"{store}.sim")

    def retire_west(self, *words: str) -> subprocess.CompletedProcess[str]:
        return fairlead("nats", "retire", "west", *words, "--nats", self.server.url, environ={})

    async def join(self, member: str) -> None:
        policy = a_weighted_policy({"team-a": 1.0}, "gpu", member)
        await self.policies.put(subjects.DOCUMENT_KEY, encode_document(policy))

    async def states(self, *clusters: str) -> None:
        def told() -> bool:
            return {subjects.parse_state(one).cluster for one in self.facts.values} == set(clusters)

        await eventually(told, what=f"facts of {clusters} and no others")

    async def west_gone(self) -> bool:
        return await self.members.get(subjects.leader_key("watcher", "west")) is None

    async def leave_all(self) -> None:
        """Writes what services and operators leave of both clusters beside their facts."""
        for key in (subjects.leave_key, subjects.revocation_key, subjects.lever_key):
            await self.policies.put(key("west"), b"{}")
            await self.policies.put(key("east"), b"{}")
        await self.bus.publish(subjects.submit("west", "team.a"), b"{}")
        await self.bus.publish(subjects.submit("east", "team-b"), b"{}")


@pytest.fixture
async def retiring(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Retiring]:
    assert provision(nats_server, "east", "west").returncode == 0
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
        facts: Mirror[State] = Mirror(
            bus, stream="state", filter=subjects.state_filter(), codec=STATE, wake=asyncio.Event()
        )
        running = asyncio.create_task(facts.run())
        yield Retiring(nats_server, tmp_path, bus, facts)
        running.cancel()


async def test_a_cluster_that_lives_or_that_the_policy_names_is_not_retired(retiring: Retiring) -> None:
    await retiring.join("west/gpu")
    with retiring.start("west", "west"):
        await retiring.states("west")
        refused = retiring.retire_west()
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "services of west still lead: watcher" in refused.stderr
    await eventually(retiring.west_gone)
    refused = retiring.retire_west("--dry-run")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "the policy names west/gpu in pool gpu" in refused.stderr
    await retiring.states("west")


async def test_of_a_retired_cluster_nothing_is_left_and_one_of_its_name_begins_anew(
    retiring: Retiring,
) -> None:
    bus = retiring.bus
    await retiring.join("east/gpu")
    with retiring.start("east", "east"):
        with retiring.start("west", "west"):
            await retiring.states("east", "west")
        await eventually(retiring.west_gone)
        await retiring.leave_all()

        looked = retiring.retire_west("--dry-run")
        assert looked.returncode == 1
        assert [line.removesuffix(": stands") for line in looked.stdout.splitlines()] == [
            "durable submit/submit-west",
            "stream submit: fairlead.v1.submit.west.>",
            "stream submit: submissions that nobody took in, by tenant: team.a (1)",
            f"stream state: facts: {sum('.west.' in subject for subject in retiring.facts.values)}",
            "bucket policy: clearance.west",
            "bucket policy: revocation.west",
            "bucket policy: lever.west",
        ]
        done = retiring.retire_west()
        assert (done.returncode, done.stdout) == (0, looked.stdout.replace("stands", "removed"))
        await retiring.states("east")
        with pytest.raises(NoStreamError):
            await bus.publish(subjects.submit("west", "team-a"), b"{}")
        assert await bus.last("submit", subjects.submit("east", "team-b")) is not None
        assert await retiring.policies.get(subjects.leave_key("east")) is not None
        again = retiring.retire_west()
        assert (again.returncode, again.stdout) == (0, "")
        assert "nothing is left of west" in again.stderr

        back = provision(retiring.server, "west").stdout.splitlines()
        # Made anew, the durable of answers would tell senders all of the last week again.
        assert [line.partition(":")[0] for line in back] == ["stream submit", "durable submit/submit-west"]
        with retiring.start("west", "west-2"):
            await retiring.states("east", "west")


def test_a_cluster_that_cannot_be_called_so_is_wrong_input(nats_server: NatsServer) -> None:
    assert provision(nats_server, "west").returncode == 0
    for command in ("provision", "retire"):
        wrong = fairlead("nats", command, "any", "--nats", nats_server.url, environ={})
        assert (wrong.returncode, wrong.stdout) == (2, "")
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
