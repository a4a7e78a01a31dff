"""What Grafana's dashboards ask of Prometheus, and whether it has an answer."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairlead_testkit.awaiting import NeverHappenedError, eventually
from fairlead_testkit.prometheus import Prometheus

FOLDER = Path(__file__).resolve().parents[4] / "deploy" / "monitoring" / "grafana" / "dashboards"


def asked_by_panels() -> Iterator[tuple[str, str]]:
    """Every PromQL expression of a panel, behind the place that it stands in; variables take everything."""
    for path in sorted(FOLDER.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                if "expr" in target:
                    expression = target["expr"].replace("$__rate_interval", "30s")
                    yield f"{path.name}: {panel['title']}", re.sub(r"\$(pool|tenant)\b", ".*", expression)


async def all_scraped(prometheus: Prometheus, processes: int) -> None:
    """Wait until so many have been looked at: what happens from then on is an increase."""

    async def are_up() -> bool:
        return len(await asyncio.to_thread(prometheus.query, "up == 1")) == processes

    await eventually(are_up, 60, what="every service is scraped")


async def all_speak(prometheus: Prometheus, asked: Iterable[tuple[str, str]], seconds: float = 90) -> None:
    """Wait until each expression has given a number.

    Raises:
        NeverHappenedError: some did not in time; they are told.
    """
    left = dict(enumerate(asked))

    async def none_is_silent() -> bool:
        for number, (_, expression) in list(left.items()):
            samples = await asyncio.to_thread(prometheus.query, expression)
            if any(sample.value[1] != "NaN" for sample in samples):
                del left[number]
        return not left

    try:
        await eventually(none_is_silent, seconds, what="every expression gives data")
    except NeverHappenedError as error:
        error.add_note("silent:\n" + "\n".join(f"{place}: {text}" for place, text in left.values()))
        raise
