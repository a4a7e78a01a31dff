"""An operator's word on writing levels: pause, resume, release."""

import getpass
from datetime import UTC, datetime

from fairlead_bus import Bucket, Bus
from fairlead_cli.connection import ask, connected, server_of
from fairlead_cli.console import say, warn
from fairlead_cli.errors import CommandError, NoScorerAnswersError
from fairlead_contracts import subjects, topology
from fairlead_contracts.codec import to_json
from fairlead_contracts.control import CONTROL, Control, Mode
from fairlead_contracts.errors import ContractError
from fairlead_contracts.questions import TENANTS_REPLY, TenantsQuestion

EFFECT = {
    Mode.ACTIVE: "levels follow the order again",
    Mode.PAUSED: "nothing is written from now on; levels stay as they are",
    Mode.RELEASED: "every level is taken away, then nothing is written",
}


async def steer(bus: Bus, mode: Mode, *, pool: str | None, by: str, why: str) -> list[str]:
    """Set the mode of a pool, or of all.

    Returns:
        What to tell, a line each.
    """
    bucket = Bucket(bus, topology.POLICY)
    control = Control(mode=mode, at=datetime.now(UTC), by=by, why=why)
    await bucket.put(subjects.control_key(pool), to_json(control))
    lines = [f"{'all pools' if pool is None else f'pool {pool}'}: {mode.value}; {EFFECT[mode]}"]
    if (
        pool is not None
        and (overall := await _mode_of_all(bucket)) is not Mode.ACTIVE
        and overall is not mode
    ):
        lines.append(f"all pools are {overall.value}, and the stricter of the two holds")
    return lines


async def _mode_of_all(bucket: Bucket) -> Mode:
    entry = await bucket.get(subjects.control_key())
    if entry is None:
        return Mode.ACTIVE
    try:
        return CONTROL.decode(entry.value).mode
    except ContractError as error:
        warn(f"the word on all pools cannot be read, so services take it for a pause: {error}")
        return Mode.PAUSED


async def set_mode(nats: str | None, mode: Mode, *, pool: str | None, by: str, why: str) -> None:
    """Set the mode, and say what that means and where it holds: a person with several shells may be in the wrong one."""
    async with connected(nats) as bus:
        say(f"speaking to NATS at {server_of(nats)}")
        for line in await steer(bus, mode, pool=pool, by=by, why=why):
            say(line)
        await _say_where(bus, pool)


async def _say_where(bus: Bus, pool: str | None) -> None:
    """Names the clusters, and warns of a pool that the scorers do not know: it may be misspelt, or not be there yet.

    Said after the word was given, which must not depend on scorers.
    """
    try:
        reply = await ask(bus, "tenants", TenantsQuestion(pool=pool), TENANTS_REPLY)
    except NoScorerAnswersError:
        warn(
            "no scorer answers, so nobody says which clusters this holds for; their admitters heed it all the same"
        )
        return
    except CommandError as error:
        warn(str(error))
        return
    clusters = {one.cluster: one.frontend for found in reply.pools for one in found.steering}
    told = ", ".join(f"{name} ({frontend})" for name, frontend in sorted(clusters.items()))
    say(f"it holds for: {told}" if told else "it holds for no cluster yet: none has stated a queue")


def this_user() -> str:
    """The name of whoever gives the command; empty where the machine does not know it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
