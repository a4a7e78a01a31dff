"""`fairlead nats config` and `check`: files that a real nats-server takes, grown and rotated without a restart."""

import asyncio
import contextlib
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from fairlead_bus import ClosedError, ConnectFailedError, ConnectionSettings, connect
from fairlead_bus.observer import BusTally
from fairlead_bus.server.program import server_program
from fairlead_bus.server.provision import provision
from fairlead_cli.errors import InputError
from fairlead_cli.nats.files import read_stated
from fairlead_contracts import subjects
from fairlead_contracts.topology import topology
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.nats_servers.nats_server import START_SECONDS
from fairlead_testkit.processes.command import fairlead
from fairlead_testkit.processes.free_ports import await_listening, free_ports

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def nats(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return fairlead("nats", *map(str, words), environ={})


@pytest.fixture
def made(tmp_path: Path) -> Path:
    found = nats("config", tmp_path / "nats", "c1", "--tenant", "team-a", "--operator", "ann")
    assert found.returncode == 0, found.stderr
    return tmp_path / "nats"


@pytest.fixture
def server(made: Path, tmp_path: Path) -> Iterator[NatsServer]:
    """A server of the test's own that includes the accounts."""
    include = os.path.relpath(made / "accounts.conf", tmp_path / "server")
    with NatsServer(tmp_path / "server", config=f"include {include}") as running:
        yield running


def settings(server: NatsServer, made: Path, user: str) -> ConnectionSettings:
    seed = made / "users" / f"{user}.nk"
    return ConnectionSettings(url=server.url, nkey_seed=str(seed), connect_timeout_seconds=2.0)


def test_the_files_are_what_a_server_takes_and_keys_are_for_their_owner_alone(made: Path) -> None:
    checked = subprocess.run(
        [server_program(), "-t", "-c", made / "nats-server.conf"], capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    for path in (made / "users").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((made / "users").stat().st_mode) == 0o700
    seeds = {path.read_text().strip() for path in (made / "users").glob("*.nk")}
    public = "".join(
        (made / name).read_text() for name in ("accounts.conf", "layout.json", "nats-server.conf")
    )
    assert len(seeds) == 8
    assert not [seed for seed in seeds if seed in public]
    told = (made / "users" / "tenant.team-a.env").read_text().splitlines()
    assert told == [
        "FAIRLEAD_NATS_URL=nats://127.0.0.1:4222",
        f"FAIRLEAD_NATS_NKEY_SEED={made / 'users' / 'tenant.team-a.nk'}",
        "FAIRLEAD_TENANT=team-a",
    ]


def test_again_it_changes_nothing_and_what_is_wrong_is_told(made: Path) -> None:
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    again = nats("config", made)
    assert (again.returncode, again.stdout) == (0, "")
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before
    for words, told in (
        ((made, "--rotate", "tenant.team-z"), "is not a user"),
        ((made, "--group", "x=team-a"), "is named twice"),
        ((made, "any"), "not 'any'"),
        ((made, "--tls-cert", "x.pem"), "belong together"),
        ((made.parent / "empty",), "name the clusters"),
    ):
        wrong = nats("config", *words)
        assert (wrong.returncode, told in wrong.stderr) == (2, True), wrong.stderr
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"more": ' + b"[" * 100_000, "lists and mappings nest too deeply"),
        (b'{"server": {"url": "\xff"}}', "its text must be in UTF-8"),
        (b'{"layout": ', "Input data was truncated"),
    ],
)
def test_a_layout_that_somebody_broke_is_told_by_its_name(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "layout.json").write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_stated(tmp_path)
    assert str(refused.value) == f"{tmp_path}/layout.json is not as it was written: {told}"


def test_a_layout_that_the_system_does_not_give_is_told_in_its_words(tmp_path: Path) -> None:
    assert read_stated(tmp_path) is None
    (tmp_path / "layout.json").mkdir()
    with pytest.raises(InputError, match=r"layout[.]json cannot be read: Is a directory$"):
        read_stated(tmp_path)


def test_each_tenant_has_so_many_connections_and_no_more(made: Path) -> None:
    def limits() -> list[str]:
        lines = (made / "accounts.conf").read_text().splitlines()
        return [line.strip(" ,") for line in lines if "max_connections" in line]

    assert limits() == ['"max_connections": 100']
    assert nats("config", made, "--group", "lab=lab-1,lab-2", "--tenant-connections", "7").returncode == 0
    assert nats("config", made, "--tenant", "team-b").returncode == 0  # what was said stays
    assert limits() == ['"max_connections": 7', '"max_connections": 14', '"max_connections": 7']
    refused = nats("config", made, "--tenant-connections", "0")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "must be 1 or more" in refused.stderr


async def test_a_new_tenant_and_a_new_key_take_a_reload_and_disturb_nobody(
    made: Path, server: NatsServer
) -> None:
    tally, old = BusTally(), BusTally()
    async with connect(settings(server, made, "provisioner"), name="p") as provisioner:
        await provision(provisioner, topology(["c1"]))
    async with (
        connect(settings(server, made, "scorer"), name="scorer", observer=tally),
        connect(settings(server, made, "tenant.team-a"), name="a", observer=old),
    ):
        found = nats("config", made, "--tenant", "team-b", "--rotate", "tenant.team-a")
        assert found.stdout.splitlines() == ["tenant.team-a: new key", "tenant.team-b: new key"]
        for _ in range(2):  # nats-server takes up the imports of a new account at the second
            server.reload()
        await eventually(lambda: old.counts["bus.disconnects"], on=old.heard, what="the old key is out")
        for tenant in ("team-a", "team-b"):
            async with connect(settings(server, made, f"tenant.{tenant}"), name="t") as bus:
                assert (await bus.publish(subjects.submit("c1", tenant), b"{}")).seq
        assert tally.counts["bus.disconnects"] == 0

    layout = made / "layout.json"
    whole = json.loads(layout.read_text())
    del whole["layout"]["groups"]["team-b"]
    layout.write_text(json.dumps(whole))
    gone = settings(server, made, "tenant.team-b").seed()
    assert nats("config", made).returncode == 0
    assert not (made / "users" / "tenant.team-b.nk").exists()
    (made.parent / "gone.nk").write_text(gone or "")
    server.reload()
    with pytest.raises(ConnectFailedError):
        async with connect(
            ConnectionSettings(
                url=server.url, nkey_seed=str(made.parent / "gone.nk"), connect_timeout_seconds=1.0
            ),
            name="gone",
        ):
            pass


async def test_who_has_the_old_key_ends_once_the_new_one_is_there_and_says_so(
    made: Path, server: NatsServer
) -> None:
    """A supervisor starts it again, with the new one. As long as there is none it goes on trying."""
    tally = BusTally()
    async with (
        connect(settings(server, made, "scorer"), name="scorer", observer=tally) as bus,
        asyncio.timeout(60),
    ):
        key = made / "users" / "scorer.nk"
        old = key.read_bytes()
        nats("config", made, "--rotate", "scorer")
        new = key.read_bytes()
        key.write_bytes(old)
        server.reload()
        await eventually(lambda: tally.counts["bus.error.Error"] > 1, on=tally.heard, what="refused twice")
        assert not bus.connection.closed.is_set()
        key.write_bytes(new)
        await bus.wait_closed()
        with pytest.raises(ClosedError, match="its file holds another one by now"):
            await bus.publish("x", b"")
    async with connect(settings(server, made, "scorer"), name="scorer"):
        pass


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """A new authority's certificate, and a server's certificate and key by it."""
    folder.mkdir()
    authority = trustme.CA()
    pair = authority.issue_cert("127.0.0.1", "localhost")
    ca, cert, key = (folder / name for name in ("ca.pem", "server.pem", "server.key"))
    authority.cert_pem.write_to_path(ca)
    pair.cert_chain_pems[0].write_to_path(cert)
    pair.private_key_pem.write_to_path(key)
    return ca, cert, key


@contextlib.contextmanager
def served(config: Path, port: int) -> Iterator[None]:
    """A server with the configuration that was written, as it is."""
    with subprocess.Popen([server_program(), "-c", config], stderr=subprocess.DEVNULL) as running:
        try:
            await_listening(port, START_SECONDS)
            yield
        finally:
            running.kill()


def test_with_tls_each_user_is_told_the_authority_and_no_other_one_will_do(tmp_path: Path) -> None:
    ca, cert, key = certificates(tmp_path / "pki")
    made, port = tmp_path / "nats", free_ports(1)[0]
    found = nats(
        *("config", made, "c1", "--tenant", "team-a", "--listen", f"127.0.0.1:{port}"),
        *("--url", f"tls://127.0.0.1:{port}", "--tls-cert", cert, "--tls-key", key, "--tls-ca", ca),
    )
    assert found.returncode == 0, found.stderr

    def as_user(user: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        told = dict(line.split("=", 1) for line in (made / "users" / f"{user}.env").read_text().splitlines())
        return fairlead(*words, environ=told | variables)

    with served(made / "nats-server.conf", port):
        provisioned = as_user("provisioner", "nats", "provision", "c1")
        assert provisioned.returncode == 0, provisioned.stderr
        checked = nats("check", made)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        foreign, *_ = certificates(tmp_path / "other")
        refused = as_user("provisioner", "nats", "provision", "c1", FAIRLEAD_NATS_TLS_CA=str(foreign))
        assert refused.returncode == 3
        assert "certificate" in refused.stderr


async def test_the_check_finds_nothing_until_somebody_grants_more(made: Path, server: NatsServer) -> None:
    async with connect(settings(server, made, "provisioner"), name="p") as provisioner:
        await provision(provisioner, topology(["c1"]))
    sound = nats("check", made, "--nats", server.url)
    assert sound.returncode == 0, sound.stdout
    assert sound.stdout == "8 users may do what they need, and nothing else\n"
    accounts = made / "accounts.conf"
    # With its comma: the provisioner, whose last right it is, keeps it.
    accounts.write_text(accounts.read_text().replace('"$KV.policy.lever.c1",', '"$KV.policy.>",'))
    server.reload()
    faulty = nats("check", made, "--nats", server.url)
    assert faulty.returncode == 1
    keys = "clearance.c1", "fairlead-check", "revocation.c1"
    told = [f"too wide: admitter.c1 may publish to $KV.policy.{key}\n" for key in keys]
    assert faulty.stdout == "".join(told) + "3 faults\n"
    nobody = nats("check", made, "--nats", "nats://127.0.0.1:9")
    assert (nobody.returncode, "no NATS server answers" in nobody.stderr) == (3, True)
    assert nats("check", made.parent).returncode == 2


async def test_in_operator_mode_tokens_are_pushed_and_the_server_does_not_even_reload(tmp_path: Path) -> None:
    made = tmp_path / "nats"
    found = nats("config", made, "c1", "--tenant", "team-a", "--operator", "ann", "--jwt")
    assert found.returncode == 0, found.stderr
    for path in [*(made / "users").iterdir(), *(made / "signers").iterdir()]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path

    with NatsServer(tmp_path / "server", config="include ../nats/accounts.conf") as running:

        def creds(user: str) -> ConnectionSettings:
            return ConnectionSettings(url=running.url, creds=str(made / "users" / f"{user}.creds"))

        async with connect(creds("provisioner"), name="p") as provisioner:
            await provision(provisioner, topology(["c1"]))
        checked = nats("check", made, "--nats", running.url)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        old, tally = BusTally(), BusTally()
        stolen = {"tenant.team-a": (made / "users" / "tenant.team-a.creds").read_bytes()}
        async with (
            connect(creds("scorer"), name="scorer", observer=tally),
            connect(creds("tenant.team-a"), name="a", observer=old),
        ):
            grown = nats("config", made, "--tenant", "team-b", "--rotate", "tenant.team-a")
            assert grown.stdout.splitlines() == ["tenant.team-a: new key", "tenant.team-b: new key"]
            assert ("reload" in grown.stderr, f"`fairlead nats push {made}`" in grown.stderr) == (False, True)
            told = nats("push", made, "--nats", running.url)
            assert (told.returncode, told.stdout.splitlines()[0]) == (0, "FAIRLEAD: taken"), told.stderr
            await eventually(lambda: old.counts["bus.disconnects"], on=old.heard, what="the old key is out")
            for tenant in ("team-a", "team-b"):
                async with connect(creds(f"tenant.{tenant}"), name="t") as bus:
                    assert (await bus.publish(subjects.submit("c1", tenant), b"{}")).seq
            assert tally.counts["bus.disconnects"] == 0

        layout = made / "layout.json"
        whole = json.loads(layout.read_text())
        whole["layout"]["clusters"] = ["c2"]
        layout.write_text(json.dumps(whole))
        stolen["admitter.c1"] = (made / "users" / "admitter.c1.creds").read_bytes()
        for _ in range(2):  # who is out stays out when something else changes
            assert nats("config", made).returncode == 0
            assert nats("push", made, "--nats", running.url).returncode == 0
            for user, kept in stolen.items():
                (tmp_path / user).write_bytes(kept)
                old_creds = ConnectionSettings(
                    url=running.url, creds=str(tmp_path / user), connect_timeout_seconds=1.0
                )
                with pytest.raises(ConnectFailedError):
                    async with connect(old_creds, name=user):
                        pass


def test_in_operator_mode_servers_of_other_machines_keep_tokens_beside_their_streams(tmp_path: Path) -> None:
    made = tmp_path / "nats"
    assert nats("config", made, "c1", "--jwt", "--store", "/data/jetstream").returncode == 0
    assert 'dir: "/data/jetstream/resolver"' in (made / "accounts.conf").read_text()
    assert str(tmp_path) not in (made / "accounts.conf").read_text() + (made / "nats-server.conf").read_text()
