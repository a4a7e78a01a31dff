"""A tenant that floods, as a process of its own: its work is no part of what it is measured beside.

`python bench/flooding.py SUBJECT PREFIX COUNT A-SECOND DEMAND`, with its address and key in the environment, as the CLI has them.
"""

import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from os import environ

import msgspec

from fairlead_bus import ConnectionSettings, Publisher, connect
from fairlead_testkit.fleets.fleet import equal_jobs

_TOGETHER = 20


async def flood(
    who: Mapping[str, str],
    subject: str,
    prefix: str,
    count: int,
    *,
    a_second: float,
    demand: Mapping[str, int],
) -> list[str]:
    """Have another process submit so many jobs; gives their ids once all are stored.

    Args:
        who: the environment of the tenant's own user.
        subject: the subject that they are sent to.
        prefix: beginning of the ids.
        count: number of jobs.
        a_second: jobs a second.
        demand: demand of each job.
    """
    words = (subject, prefix, str(count), str(a_second), json.dumps(dict(demand)))
    sender = await asyncio.create_subprocess_exec(
        sys.executable, __file__, *words, env={**environ, **who}, stdout=PIPE
    )
    await sender.communicate()
    assert sender.returncode == 0, "the flood broke off"  # noqa: S101 # a figure of half a flood is none
    return [str(job["id"]) for job in equal_jobs(prefix, count, run_seconds=3600)]


async def _submit(subject: str, prefix: str, count: int, a_second: float, demand: Mapping[str, int]) -> None:
    own = ConnectionSettings(url=environ["FAIRLEAD_NATS_URL"], nkey_seed=environ["FAIRLEAD_NATS_NKEY_SEED"])
    async with connect(own, name="flood") as bus:
        publisher, begun = Publisher(bus), time.monotonic()
        for number, job in enumerate(equal_jobs(prefix, count, run_seconds=3600)):
            if number % _TOGETHER == 0:
                await asyncio.sleep(max(0.0, begun + number / a_second - time.monotonic()))
            await publisher.put(subject, msgspec.json.encode(job | {"demand": demand}))
        await publisher.flush()


if __name__ == "__main__":
    to, named, many, rate, asked = sys.argv[1:]
    asyncio.run(_submit(to, named, int(many), float(rate), json.loads(asked)))
