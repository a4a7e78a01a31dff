"""Dashboards, rules and alerts: what they ask exists, gives data under load, and fires on its fault."""

import asyncio
import contextlib
import importlib.util
import json
import re
import subprocess
import typing
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import aiohttp
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from fairlead_bus import Bus
from fairlead_checker.instruments import CheckerInstruments
from fairlead_runtime.health import HealthServer, Readiness
from fairlead_runtime.metrics import Metrics, MetricsObserver
from fairlead_slurm_bridge.instruments import BridgeInstruments
from fairlead_testkit import eventually
from fairlead_testkit.fleets.fleet import Fleet, equal_jobs, one_pool, submit_all
from fairlead_testkit.telemetry.prometheus import Prometheus, all_speak, asked_by_panels, ensure_prometheus
from fairlead_watcher.instruments import WatcherInstruments

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "monitoring"
RULES, ALERTS = FOLDER / "prometheus" / "rules" / "fairlead.yaml", FOLDER / "alerts" / "fairlead.yaml"
RUNBOOKS = ROOT / "docs" / "runbooks"
GPU = "nvidia.com/gpu"
TENANTS = ("team-a", "team-b")
POLICY = one_pool(TENANTS)
NOT_ON_A_SIMULATED_CLUSTER = {"Admissions out of order", "Fit, and held back by something else"}
"""Panels without data on a simulated cluster. Its queues state no quota, so that nobody knows whether a job would
have fitted: tests/e2e/test_kueue_adherence.py gives both their data, on a real Kueue, by admissions that it
provokes."""
NOT_OF_A_SIMULATED_CLUSTER = "fairlead-frontends.json"
"""Dashboard of what bridges and checkers tell: tests/e2e/test_slurm_order.py and test_kueue_gang_fit.py give it data,
on a real Slurm and Kueue."""
_SUFFIX = re.compile(r"_(bucket|total|count|sum)$")
_JOB = re.compile(r"team-[ab]-\d")
SLURMCTLD = "slurmctld"
MOST_SERIES = 500
"""The most series of one metric and process, a histogram's buckets among them."""
_METRIC = re.compile(r"\bfairlead[a-z0-9_:]+")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dashboards", FOLDER / "dashboards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))  # as for a script: its pages lie beside it
        spec.loader.exec_module(module)
    return module


def boards() -> dict[str, dict[str, object]]:
    return {
        path.name: json.loads(path.read_text()) for path in (FOLDER / "grafana" / "dashboards").glob("*.json")
    }


def panels(board: dict[str, object]) -> list[dict[str, object]]:
    found = board["panels"]
    assert isinstance(found, list)
    return found


def rules(path: Path) -> list[dict[str, object]]:
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def asked() -> Iterator[tuple[str, str]]:
    """Every expression of a panel or a recording rule, with the place that it stands in."""
    yield from asked_by_panels()
    for rule in rules(RULES):
        yield f"rule {rule['record']}", str(rule["expr"])


def given_here() -> list[tuple[str, str]]:
    """Expressions that a simulated cluster gives data of, each with its place."""
    return [
        (place, expression)
        for place, expression in asked()
        if place.rpartition(": ")[2] not in NOT_ON_A_SIMULATED_CLUSTER
        and (not place.startswith(NOT_OF_A_SIMULATED_CLUSTER) or place.endswith(": Who leads"))
    ]


def test_dashboards_are_what_their_description_makes() -> None:
    made: dict[str, str] = generator().files()
    found = {path.name: path.read_text() for path in (FOLDER / "grafana" / "dashboards").glob("*.json")}
    assert found == made, "run `make dashboards`"
    operator_rules: str = generator().operator_rules()
    made_rules = (FOLDER / "prometheusrule.yaml").read_text()
    assert made_rules == operator_rules, "run `make dashboards`"
    told = [rule for group in yaml.safe_load(made_rules)["spec"]["groups"] for rule in group["rules"]]
    assert told == [*rules(RULES), *rules(ALERTS)]


@pytest.mark.parametrize("name", sorted(boards()))
def test_a_dashboard_has_what_grafana_needs_and_what_a_reader_needs(name: str) -> None:
    board = boards()[name]
    assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= board.keys()
    assert board["uid"] == name.removesuffix(".json")
    places: set[tuple[int, int]] = set()
    ids: set[object] = set()
    known = {variable["name"] for variable in board["templating"]["list"]}  # type: ignore[index] # JSON
    for panel in panels(board):
        assert {"id", "type", "title", "gridPos", "targets", "fieldConfig", "datasource"} <= panel.keys()
        assert len(str(panel["description"])) > 60, "what to do when it looks bad"
        assert str(panel["description"]).endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]  # type: ignore[index] # JSON
        grid: dict[str, int] = panel["gridPos"]  # type: ignore[assignment] # JSON
        assert grid["x"] + grid["w"] <= 24
        cells = {
            (x, y)
            for x in range(grid["x"], grid["x"] + grid["w"])
            for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not cells & places, "panels lie over one another"
        places |= cells
        ids.add(panel["id"])
        used = set(re.findall(r"\$\{?(?!__)([a-z]+)", json.dumps(panel)))
        assert used <= known, "a variable that the page does not have"
    assert len(ids) == len(panels(board))
    assert max(y for _, y in places) < 5 * 8, "nothing that scrolls for ever"


COUNTED, A_SECOND, SECONDS, PART = "short", "ops", "s", "percentunit"
NO_PART = ("fairlead:jain:ratio", "fairlead:writes_per_admission:ratio")
"""Ratios that nobody reads as a part of something."""


def unit_of(expression: str) -> str:
    """Unit of an expression, by what it asks for last."""
    if any(name in expression for name in NO_PART):
        return COUNTED
    if re.search(r"\) / sum by|_ratio\b|:ratio\b", expression):
        return PART
    if "histogram_quantile" in expression or re.search(r"_seconds(:p\d+)?\b", expression):
        return SECONDS
    return A_SECOND if re.search(r"\brate\(", expression) else COUNTED


@pytest.mark.parametrize("name", sorted(set(boards()) - {"fairlead-job.json"}))
def test_each_line_of_a_panel_has_the_unit_of_what_it_asks(name: str) -> None:
    for panel in panels(boards()[name]):
        config: dict[str, typing.Any] = panel["fieldConfig"]  # type: ignore[assignment] # JSON
        others = {one["matcher"]["options"]: one["properties"][0]["value"] for one in config["overrides"]}
        targets: list[dict[str, str]] = panel["targets"]  # type: ignore[assignment] # JSON
        units = [others.get(target["refId"], config["defaults"]["unit"]) for target in targets]
        assert units == [unit_of(target["expr"]) for target in targets], panel["title"]


def test_each_alert_has_its_runbook_and_each_runbook_its_alert() -> None:
    alerts = {str(rule["alert"]): rule for rule in rules(ALERTS)}
    page = (ROOT / "docs" / "observability.md").read_text()
    assert set(re.findall(r"\[(Fairlead\w+)\]\(runbooks/\1\.md\)", page)) == alerts.keys()
    assert {path.stem for path in RUNBOOKS.glob("Fairlead*.md")} == alerts.keys()
    for name, rule in alerts.items():
        assert rule["annotations"]["runbook"] == f"docs/runbooks/{name}.md"  # type: ignore[index] # YAML
        text = (RUNBOOKS / f"{name}.md").read_text()
        assert all(part in text for part in ("## What it means", "## Look", "## Do"))


@pytest.mark.integration
def test_rules_and_alerts_pass_promtool() -> None:
    ensure_prometheus()
    for words in (["check", "rules", str(RULES), str(ALERTS)], ["test", "rules", "tests.yaml"]):
        ran = subprocess.run(
            ["promtool", *words],  # noqa: S607 # found on the PATH by `ensure_prometheus`
            cwd=ALERTS.parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


@contextlib.asynccontextmanager
async def pages_without_a_cluster(
    silent: dict[str, float], watcher: Metrics
) -> AsyncIterator[dict[str, list[int]]]:
    """Ports of the own instruments of a watcher, a bridge and a checker: no such cluster is beside a simulated one.

    Args:
        silent: seconds for which the watcher has heard nothing, by kind, and the bridge of `SLURMCTLD`; asked at each scrape.
        watcher: metrics of the watcher.
    """
    bridge, checker = Metrics("slurm-bridge"), Metrics("checker")
    instruments = WatcherInstruments(watcher)
    instruments.heard({kind: partial(silent.__getitem__, kind) for kind in silent.keys() - {SLURMCTLD}})
    of_bridge = BridgeInstruments(bridge)
    of_bridge.heard(partial(silent.__getitem__, SLURMCTLD))
    for own in (instruments, of_bridge, CheckerInstruments(checker)):
        own.role(lambda: True)
    MetricsObserver(watcher, "kube").count("watch.ended")
    async with contextlib.AsyncExitStack() as stack:
        yield {
            f"fairlead-{metrics.subsystem}": [
                (await stack.enter_async_context(HealthServer(metrics, Readiness(), port=0))).port
            ]
            for metrics in (watcher, bridge, checker)
        }


def quick_alerts(folder: Path) -> Path:
    """The alerts, firing after a second instead of minutes: how long they wait is promtool's to check."""
    path = folder / "alerts.yaml"
    path.write_text(re.sub(r"for: \w+", "for: 1s", ALERTS.read_text()).replace("[1m]", "[10s]"))
    return path


async def load(bus: Bus) -> None:
    """Jobs of both tenants, more than fit, for as long as the test looks."""
    for number in range(1000):
        for tenant, seconds in zip(TENANTS, (0.5, 1.5), strict=True):
            await submit_all(bus, tenant, equal_jobs(f"{tenant}-{number}", 4, run_seconds=seconds))
        await asyncio.sleep(0.5)


@pytest.mark.integration
@pytest.mark.timeout(300)
async def test_all_that_is_asked_gives_data_under_load_and_an_alert_fires_on_its_fault(
    tmp_path: Path,
) -> None:
    ensure_prometheus()
    fleet = Fleet(
        tmp_path,
        policy=POLICY,
        gpus=4,
        scorers=2,
        # No collector is there: nothing may wait for it, what it does not take is counted, and exemplars are there all the same.
        settings={"stale_after_seconds": 1, "otel_endpoint": "http://127.0.0.1:1", "otel_sample_ratio": 1},
    )
    silent = {"workloads": 0.0, SLURMCTLD: 0.0}
    watcher = Metrics("watcher")
    met = MetricsObserver(watcher)
    met.count("announcer.too_large", 0)  # as an announcer begins
    async with fleet.running() as bus, pages_without_a_cluster(silent, watcher) as others:
        ports = await fleet.health_ports("scorer", "admitter", "sim") | others
        loading = asyncio.create_task(load(bus))
        try:
            with Prometheus(tmp_path, ports, [RULES, quick_alerts(tmp_path)]) as prometheus:
                await all_speak(prometheus, given_here())
                pages = [port for known in ports.values() for port in known]
                await check_all_is_declared(prometheus, pages)
                await check_labels_are_few_and_known(pages)
                for latency in ("fairlead_admitter_wait", "fairlead_admitter_event_to_level"):
                    await eventually(partial(has_exemplars, prometheus, f"{latency}_seconds_bucket"), 60)
                await eventually(partial(has_no_alert, prometheus), 60, what="nothing is wrong")
                for scorer in fleet.named("scorer"):
                    scorer.kill()
                silent |= dict.fromkeys(silent, 90.0)
                met.count("announcer.too_large")
                await check_alerts_fire(prometheus)
        finally:
            loading.cancel()


async def has_exemplars(prometheus: Prometheus, metric: str) -> bool:
    return bool(await asyncio.to_thread(prometheus.exemplars, metric))


async def has_no_alert(prometheus: Prometheus) -> bool:
    """A decision is stale here after a second, which a busy machine takes for one now and then."""
    return not await asyncio.to_thread(prometheus.alerts)


async def check_all_is_declared(prometheus: Prometheus, ports: list[int]) -> None:
    """Checks that each metric that is named anywhere is one that a service declares, or a recording rule makes."""
    declared = await asyncio.to_thread(prometheus.names)
    async with aiohttp.ClientSession() as session:
        for port in ports:
            async with session.get(f"http://127.0.0.1:{port}/metrics") as page:
                told = re.findall(r"^# TYPE (\S+)", await page.text(), re.MULTILINE)
                declared |= {_SUFFIX.sub("", name) for name in told}
    named = {name for _, text in asked() for name in _METRIC.findall(text)}
    named |= {name for rule in rules(ALERTS) for name in _METRIC.findall(str(rule["expr"]))}
    assert {name for name in named if not {name, _SUFFIX.sub("", name)} & declared} == set()


LABELS = {
    "pool", "tenant", "class", "resource", "kind", "reason", "why", "outcome", "phase", "state", "what", "cause", "error", "found", "of",
    "owner", "question", "verdict",
    "le", "generation", "implementation", "major", "minor", "patchlevel", "version",
}  # fmt: skip


async def check_labels_are_few_and_known(ports: list[int]) -> None:
    """No label's values grow with jobs or people; a tenant is one on the scorers' pages alone."""
    async with aiohttp.ClientSession() as session:
        for port in ports:
            async with session.get(f"http://127.0.0.1:{port}/metrics") as page:
                families = list(text_string_to_metric_families(await page.text()))
            for family in families:
                for sample in family.samples:
                    assert sample.labels.keys() <= LABELS, (sample.name, sample.labels)
                    assert "tenant" not in sample.labels or sample.name.startswith("fairlead_scorer_tenant_")
                    of_jobs = [value for value in sample.labels.values() if _JOB.search(value)]
                    assert not of_jobs, (sample.name, sample.labels)
                assert len(family.samples) < MOST_SERIES, f"{family.name}: {len(family.samples)} series"


async def check_alerts_fire(prometheus: Prometheus) -> None:
    """Checks alerts: without scorers the order goes stale, and nobody knows a pool; silent watches and slurmctlds are told,
    and statements that are left out."""
    wanted = {
        "FairleadStaleDecisions",
        "FairleadScorersGone",
        "FairleadWatchBroken",
        "FairleadSlurmNotRead",
        "FairleadStatementLeftOut",
    }

    async def firing() -> bool:
        alerts = await asyncio.to_thread(prometheus.alerts)
        return wanted <= {alert.labels["alertname"] for alert in alerts if alert.state == "firing"}

    await eventually(
        firing, 60, what="the alerts of scorers that are gone, of a broken watch and of what is left out"
    )
