"""An operator's word on writing levels: pause, resume, release."""

import getpass
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from fairlead_bus import Bucket, Bus
from fairlead_cli.client.connection import ask, connected, server_of
from fairlead_cli.client.controls import Controls, control_words
from fairlead_cli.console import say, warn
from fairlead_cli.errors import CommandError, NoScorerAnswersError
from fairlead_cli.options import Format
from fairlead_cli.outcomes import ControlSaid
from fairlead_cli.printing import print_outcome, print_sentence
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.control import STRICTNESS, Control, Mode
from fairlead_contracts.messages.questions import TENANTS_REPLY, PoolTenants, TenantsQuestion

EFFECT = {
    Mode.ACTIVE: "levels follow the order again",
    Mode.PAUSED: "nothing is written from now on; levels stay as they are",
    Mode.RELEASED: "every level is taken away, then nothing is written",
}

type Pools = Mapping[str, PoolTenants]
"""Pools by name, as the scorers know them."""


async def set_mode(
    nats: str | None, mode: Mode, *, pool: str | None, by: str, why: str, form: Format = "table"
) -> None:
    """Set the mode, and say what that means and where it holds: a person with several shells may be in the wrong one.

    It does not depend on scorers: of all pools the word is given before they are asked, of one pool also where none of
    them answers.

    Raises:
        CommandError: the scorers know no such pool; nothing is said of it then.
    """
    async with connected(nats) as bus:
        say(f"speaking to NATS at {server_of(nats)}")
        bucket, key = Bucket(bus, topology.POLICY), subjects.control_key(pool)
        pools = None
        if pool is not None:
            pools = await _known_pools(bus)
            # A word on a pool that is gone can be ended, and nothing else be said of it.
            ends = mode is Mode.ACTIVE and await bucket.get(key) is not None
            _check_known(pool, pools if not ends else None)
        await bucket.put(key, to_json(Control(mode=mode, at=datetime.now(UTC), by=by, why=why)))
        if pool is None:
            pools = await _known_pools(bus)
        words = await control_words(bus)
    for line in _told(mode, pool, words):
        print_sentence(line, form)
    if pools is not None:
        _tell_where(mode, pool, pools, words, form)
    clusters = sorted(_clusters(mode, pool, pools or {}, words))
    said = ControlSaid(
        pool=pool,
        mode=mode,
        by=by,
        why=why,
        stricter=[name or "" for name in _stricter_than(mode, pool, words)],
        clusters=clusters,
    )
    print_outcome(said, clusters, form)


def _check_known(pool: str, pools: Pools | None) -> None:
    """Refuses a pool that is none of those that the scorers know, if they know any.

    Raises:
        CommandError: there is no such pool.
    """
    if pools and pool not in pools:
        raise CommandError(
            f"there is no pool {pool!r}, so nothing was changed",
            hint=f"Pools are {', '.join(sorted(pools))}.",
        )


async def _known_pools(bus: Bus) -> Pools | None:
    try:
        reply = await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY)
    except NoScorerAnswersError:
        warn("no scorer answers to say which clusters this holds for; their admitters obey it all the same")
        return None
    except CommandError as error:
        warn(str(error))
        return None
    return {found.pool: found for found in reply.pools}


def _told(mode: Mode, pool: str | None, words: Controls) -> Iterator[str]:
    """Lines on the word that was set, and on each stricter word beside which it does not hold."""
    stricter = [
        f"but all pools are {words[name].in_words()}, and the stricter word holds; `fairlead resume` ends that"
        if name is None
        else f"pool {name} stays {words[name].in_words()}; `fairlead resume {name}` ends that"
        for name in _stricter_than(mode, pool, words)
    ]
    if pool is not None:
        yield f"pool {pool}: {mode.value}" + ("" if stricter else f"; {EFFECT[mode]}")
    else:
        yield f"all pools: {mode.value}; {EFFECT[mode]}" + (
            ", except where a stricter word holds:" if stricter else ""
        )
    yield from stricter


def _stricter_than(mode: Mode, pool: str | None, words: Controls) -> Iterator[str | None]:
    """The pools, None for all of them, whose own word goes before what was said just now."""
    for name, control in words.items():
        if STRICTNESS.index(control.mode) > STRICTNESS.index(mode) and (pool is None or name is None):
            yield name


def _tell_where(mode: Mode, pool: str | None, pools: Pools, words: Controls, form: Format) -> None:
    """Names the clusters, and warns of a pool that the scorers do not know: it may not be there yet."""
    if pool is not None and pool not in pools:
        warn(f"the scorers know no pool {pool!r} now")
        return
    clusters = _clusters(mode, pool, pools, words)
    told = ", ".join(f"{name} ({frontend})" for name, frontend in sorted(clusters.items()))
    if told:
        print_sentence(f"it holds for: {told}", form)
    elif not any(found.steering for name, found in pools.items() if pool in (None, name)):
        print_sentence("it holds for no cluster yet: none has stated a queue", form)


def _clusters(mode: Mode, pool: str | None, pools: Pools, words: Controls) -> dict[str, str]:
    """The clusters in which it holds, with their frontends."""
    return {
        one.cluster: one.frontend
        for name, found in pools.items()
        if pool in (None, name) and words.mode_of(name) is mode
        for one in found.steering
    }


def this_user() -> str:
    """The name of whoever gives the command; empty where the machine does not know it."""
    try:
        return getpass.getuser().encode(errors="replace").decode()
    except (KeyError, OSError):
        return ""
