"""A Prometheus of a test's own: Debian's, scraping services of the test, with our rules, on a port of its own.

Behind it, what Grafana's dashboards ask of it, and whether it has an answer.
"""

import asyncio
import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

from fairlead_testkit.processes.apt import ensure_program
from fairlead_testkit.processes.free_ports import free_ports
from fairlead_testkit.processes.own_process import OwnProcess
from fairlead_testkit.timing.awaiting import NeverHappenedError, eventually

FOLDER = Path(__file__).resolve().parents[5] / "deploy" / "monitoring" / "grafana" / "dashboards"
_START_SECONDS = 60.0
_ANSWER_SECONDS = 20.0


class SeriesSample(msgspec.Struct, frozen=True):
    """A series and its value now."""

    metric: dict[str, str]
    value: tuple[float, str]


class _Result(msgspec.Struct, frozen=True):
    result: list[SeriesSample]


class _QueryAnswer[T](msgspec.Struct, frozen=True):
    data: T


class Alert(msgspec.Struct, frozen=True):
    """An alert whose expression holds: `pending` until it has held for long enough, then `firing`."""

    labels: dict[str, str]
    state: str


class _Alerts(msgspec.Struct, frozen=True):
    alerts: list[Alert]


class Exemplar(msgspec.Struct, frozen=True):
    """A single observation that leads to a trace."""

    labels: dict[str, str]


class _Exemplars(msgspec.Struct, frozen=True):
    exemplars: list[Exemplar]


class Prometheus(OwnProcess):
    """A Prometheus process; killed by its pid at the end.

    Args:
        targets: ports on loopback by job.
        rules: files of rules and alerts.
    """

    def __init__(
        self, directory: Path, targets: Mapping[str, Sequence[int]], rules: Sequence[Path] = ()
    ) -> None:
        ensure_prometheus()
        self._directory = directory / "prometheus"
        super().__init__("Prometheus", self._directory / "log")
        self._targets = targets
        self._rules = rules
        self._port = free_ports(1)[0]

    def start(self) -> Self:
        """Start Prometheus, and return once it answers."""
        self._directory.mkdir()
        configuration = self._directory / "prometheus.json"  # JSON is YAML
        configuration.write_bytes(msgspec.json.encode(self._configuration()))
        self._begin(
            [
                "prometheus",
                f"--config.file={configuration}",
                f"--storage.tsdb.path={self._directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
                "--enable-feature=exemplar-storage",
                "--log.level=error",
            ]
        )
        self._await(self._is_ready, _START_SECONDS, "Prometheus is ready")
        return self

    def query(self, expression: str) -> list[SeriesSample]:
        """Samples that an expression gives now.

        Raises:
            urllib.error.HTTPError: it is no PromQL.
        """
        told = self._ask("/api/v1/query", query=expression)
        return msgspec.json.decode(told, type=_QueryAnswer[_Result]).data.result

    def names(self) -> set[str]:
        """The names of all series that it knows."""
        return set(
            msgspec.json.decode(self._ask("/api/v1/label/__name__/values"), type=_QueryAnswer[list[str]]).data
        )

    def alerts(self) -> list[Alert]:
        """The alerts whose expressions hold."""
        return msgspec.json.decode(self._ask("/api/v1/alerts"), type=_QueryAnswer[_Alerts]).data.alerts

    def exemplars(self, metric: str) -> set[str]:
        """The traces that a metric's exemplars lead to."""
        told = self._ask("/api/v1/query_exemplars", query=metric, start="0", end="9999999999")
        series = msgspec.json.decode(told, type=_QueryAnswer[list[_Exemplars]]).data
        return {one.labels["trace_id"] for found in series for one in found.exemplars}

    def _configuration(self) -> dict[str, object]:
        return {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in self._rules],
            "scrape_configs": [
                {
                    "job_name": job,
                    "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}],
                }
                for job, ports in self._targets.items()
            ],
        }

    def _is_ready(self) -> bool:
        """Whether it is ready: it listens before it has read its data and answers 503 until then (`/-/ready`)."""
        try:
            self._ask("/-/ready")
        except OSError:  # urllib's errors are some
            return False
        return True

    def _ask(self, path: str, **query: str) -> bytes:
        address = f"http://127.0.0.1:{self._port}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=_ANSWER_SECONDS) as reply:
            body: bytes = reply.read()
            return body


def ensure_prometheus() -> None:
    """Return where Prometheus is there. In CI, as root, apt installs it; elsewhere the test is skipped, with the remedy."""
    ensure_program("prometheus", "prometheus")


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


async def all_speak(prometheus: Prometheus, asked: Iterable[tuple[str, str]]) -> None:
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
        await eventually(none_is_silent, 90, what="every expression gives data")
    except NeverHappenedError as error:
        error.add_note("silent:\n" + "\n".join(f"{place}: {text}" for place, text in left.values()))
        raise
