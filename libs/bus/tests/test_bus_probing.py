"""Faults that `find_faults` finds: none on the shipped accounts, and each grant that is added or taken away."""

from pathlib import Path

import msgspec
import pytest

from fairlead_bus import ConnectionSettings, connect
from fairlead_bus.server.accounts import Account, AccountLayout, NatsUser
from fairlead_bus.server.probing import Login, covers, find_faults, logins
from fairlead_bus.server.provision import provision
from fairlead_contracts.topology import topology
from fairlead_testkit import NatsServer
from fairlead_testkit.nats_servers.guarded import GuardedServer, guarded_server

LAYOUT = AccountLayout(
    clusters=["c1"], groups={"team-a": ["team-a"], "team-b": ["team-b"]}, operators=["ann"]
)


def everybody(guarded: GuardedServer, accounts: list[Account]) -> list[Login]:
    def how(user: NatsUser) -> tuple[str, ConnectionSettings]:
        settings = guarded.settings(user.name)
        return settings.identity() or "", settings

    return logins(accounts, how)


def changed(accounts: list[Account], name: str, *, more: str = "", less: str = "") -> list[Account]:
    """The accounts as somebody would have them who grants this user so much more or less."""

    def other(user: NatsUser) -> NatsUser:
        if user.name != name:
            return user
        publish = [one for one in user.grants.publish if one != less] + [more] * bool(more)
        return msgspec.structs.replace(user, grants=msgspec.structs.replace(user.grants, publish=publish))

    return [
        msgspec.structs.replace(account, users=[other(user) for user in account.users])
        for account in accounts
    ]


@pytest.mark.integration
@pytest.mark.timeout(180)
async def test_the_shipped_accounts_are_faultless_and_each_change_is_found(tmp_path: Path) -> None:
    with guarded_server(tmp_path, LAYOUT.accounts) as guarded:
        async with connect(guarded.root, name="root") as root:
            await provision(root, topology(["c1"]))
            assert await find_faults(everybody(guarded, LAYOUT.accounts)) == []
            # Somebody would have the watchdog decide in the scorer's place; the server has it otherwise.
            other = changed(LAYOUT.accounts, "scorer", less="fairlead.v1.decision.>")
            other = changed(other, "watchdog", more="fairlead.v1.decision.>")
            assert sorted(await find_faults(everybody(guarded, other))) == [
                "missing: watchdog may not publish to fairlead.v1.decision.fairlead-check",
                "too wide: scorer may publish to fairlead.v1.decision.fairlead-check",
            ]
            for stream in (
                "state",
                "decision",
                "submit",
                "answer",
                "event",
                "dead",
                "KV_policy",
                "KV_members",
            ):
                assert b'"messages":0' in await root.jetstream.call(f"STREAM.INFO.{stream}"), stream


@pytest.mark.integration
async def test_a_tenant_among_the_services_is_found(tmp_path: Path) -> None:
    """Grants alone would have it so, without accounts of the tenants."""
    services, team_a, _ = LAYOUT.accounts
    shared = msgspec.structs.replace(services, users=[*services.users, *team_a.users])
    with guarded_server(tmp_path, [shared]) as guarded:
        async with connect(guarded.root, name="root") as root:
            await provision(root, topology(["c1"]))
        faults = await find_faults(everybody(guarded, [services, team_a]))
        assert faults == ["too wide: tenant.team-a has no account apart from the services'"]


@pytest.mark.parametrize(
    ("pattern", "subject", "does"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("a.*", "a.*", True),
        ("a.b", "a.*", False),
        ("a.*", "a.>", False),
        ("a.>", "a.>", True),
        ("a.b.>", "a.>", False),
        (">", "a.b", True),
        ("a.b.c", "a.b", False),
    ],
)
def test_a_pattern_covers_what_it_grants(pattern: str, subject: str, does: bool) -> None:
    assert covers(pattern, subject) is does


@pytest.mark.integration
async def test_of_a_server_without_accounts_that_is_told_first(
    tmp_path: Path, nats_server: NatsServer
) -> None:
    """All else that it says follows from it: a line for each user and subject, hundreds of them."""
    with guarded_server(tmp_path, LAYOUT.accounts) as guarded:
        scorer = next(one for one in everybody(guarded, LAYOUT.accounts) if one.user.name == "scorer")
    open_to_all = msgspec.structs.replace(scorer.settings, url=nats_server.url)
    first, *others = await find_faults([msgspec.structs.replace(scorer, settings=open_to_all)])
    assert first == "too wide: who has no key is let in: has this server taken up accounts.conf?"
    assert others
