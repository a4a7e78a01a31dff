"""Trying out what a running server lets each user do, against what the shipped grants say.

Every subject of anybody's grants is tried as every user, and so is what nobody shall do. Nothing is changed by it:
what reaches a stream names another stream as the one expected, and is refused; a call of JetStream's API has a body
that is none; a question or an order is no message that its receiver takes.

Source of what a stream refuses: nats-server's headers `Nats-Expected-Stream` (error 10060).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

import msgspec

from fairlead_bus.connection.bus import Bus, connect, inbox_prefix
from fairlead_bus.connection.settings import ConnectionSettings
from fairlead_bus.errors import (
    AnswerTimeoutError,
    BusError,
    ConnectFailedError,
    DeniedError,
    NobodyAnswersError,
)
from fairlead_bus.observer import BusTally
from fairlead_bus.server.accounts import SERVICES, Account, NatsUser, heard_subjects
from fairlead_bus.server.permissions import stream_names
from fairlead_contracts import subjects, topology

EXPECTED_STREAM = {"Nats-Expected-Stream": "fairlead-check-none"}
SAMPLE = "fairlead-check"
"""The token that stands in for a wildcard."""
NO_BODY = b"{"
"""No JSON, but what begins as such: a pull whose body is anything else counts as one for a message, and takes it."""
_TIMEOUT_SECONDS = 10.0
"""Longest wait for an answer. An allowed message is answered by a stream, by a service, or by the server that says
that nobody listens; a denial is told."""
_STRANGER_SECONDS = 2.0
_AT_ONCE = 32


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """A user and how it connects."""

    user: NatsUser
    account: str
    key: str
    settings: ConnectionSettings


def logins(
    accounts: Iterable[Account], how: Callable[[NatsUser], tuple[str, ConnectionSettings]]
) -> list[Login]:
    """Logins of all users.

    Args:
        accounts: the accounts and users that shall be let in.
        how: the public key of a user and how it connects.
    """
    found = []
    for account in accounts:
        for user in account.users:
            key, settings = how(user)
            found.append(Login(user=user, account=account.name, key=key, settings=settings))
    return found


async def find_faults(everybody: Sequence[Login]) -> list[str]:
    """Faults of a server, a sentence each: rights too wide or missing; empty where it does as the shipped grants say."""
    found = await _strangers(everybody[0].settings)
    found += [fault for login in everybody for fault in await _faults_of(login, everybody)]
    inside = next(login for login in everybody if login.account == SERVICES)
    for login in everybody:
        if login.account != SERVICES and not any("is not let in" in fault for fault in found):
            found += await _crossing(login, inside)
    return found


async def _faults_of(login: Login, everybody: Sequence[Login]) -> list[str]:
    streams = stream_names(topology.topology([]))
    publishes = {
        ".".join(SAMPLE if part in ("*", ">") else part for part in pattern.split("."))
        for one in everybody
        for pattern in one.user.grants.publish
    }
    publishes |= {f"$JS.API.STREAM.{verb}.{name}" for verb in ("PURGE", "DELETE") for name in streams}
    publishes |= {SAMPLE, "$JS.API.STREAM.NAMES"}
    listens = {pattern for one in everybody for pattern in heard_subjects(one.user.grants, one.key)}
    listens |= {
        subjects.state_filter(),
        subjects.event_filter(),
        subjects.submit_filter(subjects.ANY_CLUSTER),
        ">",
    }
    tally = BusTally()
    try:
        async with connect(login.settings, name="check", observer=tally) as bus:
            heard = await _may_subscribe(bus, tally, sorted(listens))
            said = await _may_publish(bus, sorted(publishes))
    except (ConnectFailedError, OSError) as error:
        return [f"{login.user.name} is not let in: {error}"]
    return [
        *_compared(login, "publish to", said, login.user.grants.publish),
        *_compared(login, "subscribe to", heard, heard_subjects(login.user.grants, login.key)),
    ]


def _compared(login: Login, verb: str, found: dict[str, bool], granted: Sequence[str]) -> list[str]:
    faults = []
    for subject, may in found.items():
        should = any(covers(pattern, subject) for pattern in granted)
        if may and not should:
            faults.append(f"too wide: {login.user.name} may {verb} {subject}")
        if should and not may:
            faults.append(f"missing: {login.user.name} may not {verb} {subject}")
    return faults


def covers(pattern: str, subject: str) -> bool:
    """Whether a granted pattern holds all that the subject, which may hold wildcards itself, stands for."""
    granted, asked = pattern.split("."), subject.split(".")
    for number, part in enumerate(granted):
        if part == ">":
            return len(asked) > number
        if number >= len(asked) or asked[number] == ">" or part not in ("*", asked[number]):
            return False
    return len(granted) == len(asked)


async def _may_publish(bus: Bus, tried: Sequence[str]) -> dict[str, bool]:
    free = asyncio.Semaphore(_AT_ONCE)

    async def may(subject: str) -> bool:
        async with free:
            try:
                await bus.connection.ask(subject, NO_BODY, headers=EXPECTED_STREAM, timeout=_TIMEOUT_SECONDS)
            except DeniedError:
                return False
            except (NobodyAnswersError, AnswerTimeoutError):
                return True
            return True

    return dict(zip(tried, await asyncio.gather(*map(may, tried)), strict=True))


async def _may_subscribe(bus: Bus, tally: BusTally, tried: Sequence[str]) -> dict[str, bool]:
    """A denied subscription is told to the error callback alone, in lower case."""

    async def drop(_: object) -> None:
        return None

    stops: list[Callable[[], Awaitable[None]]] = [
        await bus.subscribe_core(subject, drop) for subject in tried
    ]
    await _settled(bus)
    told = [str(note["error"]) for note in tally.said("bus.error")]
    denied = {one for one in tried if any(f'subscription to "{one.lower()}"' in text for text in told)}
    for stop in stops:
        await stop()
    return {subject: subject not in denied for subject in tried}


async def _strangers(settings: ConnectionSettings) -> list[str]:
    """The fault of a server that lets in somebody without a key; empty where it does not."""
    plain = msgspec.structs.replace(
        settings, nkey_seed=None, creds=None, connect_timeout_seconds=_STRANGER_SECONDS
    )
    try:
        async with connect(plain, name="check"):
            return ["too wide: who has no key is let in: has this server taken up accounts.conf?"]
    except (BusError, OSError):
        return []


async def _crossing(tenant: Login, inside: Login) -> list[str]:
    """Whether a tenant's submissions reach their stream, and the stream's word goes nowhere but to the tenant's account."""
    heard = asyncio.Event()
    faults = []

    async def hear(_: object) -> None:
        heard.set()

    async with (
        connect(tenant.settings, name="check") as bus,
        connect(inside.settings, name="check") as service,
    ):
        aim = f"{inbox_prefix(inside.key)}.{SAMPLE}"
        await service.subscribe_core(aim, hear)
        await _settled(service)
        bait = subjects.submit(subjects.ANY_CLUSTER, tenant.user.tenant or "")
        await bus.connection.send(bait, NO_BODY, reply=aim, headers=EXPECTED_STREAM)
        try:  # what is sent behind the bait is answered behind it
            await bus.connection.ask(bait, NO_BODY, headers=EXPECTED_STREAM, timeout=_TIMEOUT_SECONDS)
        except (NobodyAnswersError, AnswerTimeoutError):
            faults.append(
                f"missing: what {tenant.user.name} submits reaches no stream; nats-server takes up a new account at "
                "the second reload, and `fairlead nats provision` makes the stream"
            )
        except DeniedError:
            pass  # told already
        await _settled(service)
    if heard.is_set():
        faults.append(f"too wide: {tenant.user.name} has no account apart from the services'")
    return faults


async def _settled(bus: Bus) -> None:
    """Returns once the server has done what this connection asked before."""
    with suppress(DeniedError, NobodyAnswersError, AnswerTimeoutError):
        await bus.request("$SYS.REQ.USER.INFO", b"")
