"""`fairlead nats provision`: NATS made as the services expect it, one change after the other."""

import re
from collections.abc import Iterable, Iterator, Sequence

from fairlead_bus import JetStreamRefusedError, UnavailableError
from fairlead_bus.server.provision import find_changes, make
from fairlead_cli.client.connection import connected
from fairlead_cli.console import say, warn, write_line
from fairlead_cli.errors import InputError
from fairlead_cli.options import Format
from fairlead_cli.outcomes import DONE, UNDONE, NatsProvisioned
from fairlead_cli.printing import is_for_people, print_outcome
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import parse_quantity
from fairlead_contracts.topology import NO_LIMIT, Topology, limited, topology

_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


async def provisioned(
    nats: str | None,
    clusters: Sequence[str],
    *,
    max_bytes: Iterable[str],
    max_age: Iterable[str],
    replicas: int | None,
    dry_run: bool,
    form: Format = "table",
) -> int:
    """Make what is missing, change what differs, and say so, a line each; the exit code.

    Args:
        nats: address of NATS; None for that of the running instance.
        max_bytes: bounds of streams and buckets, each as NAME=LIMIT; so is `max_age`.
        max_age: how long streams keep their messages.
        dry_run: whether to change nothing.

    Raises:
        InputError: a cluster cannot be called so, or a limit cannot be read or set.
        NotRunningError: nobody is there.
    """
    wanted = _wanted(clusters, max_bytes, max_age)
    told: list[str] = []
    refused: list[str] = []
    async with connected(nats) as bus:
        changes = await find_changes(bus, wanted, replicas=replicas)
        if not changes:
            say("nothing is missing, nothing differs")
        for change in changes:
            try:
                if not dry_run:
                    await make(bus, change)
            except (JetStreamRefusedError, UnavailableError) as error:
                attempt = change.sentence("cannot be made")
                reason = getattr(error, "description", error)
                refused.append(f"{attempt}: refused by NATS: {reason}")
                warn(refused[-1])
            else:
                told.append(change.sentence("missing") if dry_run else change.sentence())
                if is_for_people(form):
                    write_line(told[-1])
    if refused:
        say(f"{len(refused)} of {len(changes)} are left as they were")
    print_outcome(NatsProvisioned(dry_run=dry_run, changes=told, refused=refused), told, form)
    return UNDONE if refused or (dry_run and changes) else DONE


def _wanted(clusters: Sequence[str], max_bytes: Iterable[str], max_age: Iterable[str]) -> Topology:
    try:
        return limited(
            topology(list(clusters)),
            max_bytes={name: _bytes(name, text) for name, text in _pairs("--max-bytes", max_bytes)},
            max_age_seconds={name: _age(name, text) for name, text in _pairs("--max-age", max_age)},
        )
    except FieldError as error:
        raise InputError(str(error)) from error


def _pairs(flag: str, given: Iterable[str]) -> Iterator[tuple[str, str]]:
    for text in given:
        name, equals, limit = text.partition("=")
        if not name or not equals:
            raise InputError(f"{flag}: must be NAME=LIMIT (found {text!r})")
        yield name, limit


def _bytes(name: str, text: str) -> int:
    return NO_LIMIT if text == "none" else parse_quantity("memory", text, field=f"--max-bytes {name}")


def _age(name: str, text: str) -> float:
    found = _AGE.fullmatch(text)
    if found is None:
        raise InputError(f"--max-age {name}: must be a number and s, m, h or d (found {text!r})")
    return float(found[1]) * _SECONDS[found[2]]
