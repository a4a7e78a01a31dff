import io
import json
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from fairlead_cli.demo.comparing import compare, report_on
from fairlead_cli.demo.report.figures import BINS, off_entitlement
from fairlead_cli.demo.report.page import UNCONTENDED, Report, render_page
from fairlead_cli.demo.report.text import render_text
from fairlead_sim import Fifo, NodeGroup, VirtualRun, Workload, equal_floods

WEIGHTS = {"a<b>": 3.0, "team-b": 2.0, "team-c": 1.0}
NODES = NodeGroup(name="node", count=2, allocatable={"nvidia.com/gpu": 8, "cpu": 64, "memory": "512Gi"})


def flood(jobs: int) -> Workload:
    return equal_floods(WEIGHTS, jobs=jobs, run_seconds=2.0, nodes=NODES, starts={"team-c": 1.0})


def canned(jobs: int = 40) -> Report:
    workload = flood(jobs)
    fifo = VirtualRun(workload, Fifo()).run()
    return report_on(
        workload, fifo, compare(workload), finished=len(workload.jobs), lost=0, facts=["made & canned"]
    )


@pytest.fixture(scope="module")
def report() -> Report:
    return canned()


def test_the_printed_figures_have_exactly_these_keys(report: Report) -> None:
    import msgspec

    found = json.loads(msgspec.json.encode(report.figures))
    assert list(found) == ["tenants", "submitted", "finished", "lost", "jain", "jain_fifo"]
    for tenant in found["tenants"]:
        assert list(tenant) == [
            "name",
            "weight",
            "entitlement",
            "share",
            "share_fifo",
            "wait_p50",
            "wait_p90",
            "jobs",
        ]
    assert found["submitted"] == found["finished"] == 120
    assert [tenant["entitlement"] for tenant in found["tenants"]] == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    assert sum(tenant["share"] for tenant in found["tenants"]) == pytest.approx(1)


def test_equal_floods_under_fifo_are_far_from_their_weights(report: Report) -> None:
    assert {tenant.name for tenant in off_entitlement(report.figures)} >= {"team-c"}
    assert report.figures.jain is not None
    assert report.figures.jain < 0.99


def test_shares_over_time_are_means_that_sum_to_the_whole(report: Report) -> None:
    for run in report.runs:
        assert 0 < len(run.course) <= BINS
        for point in run.course:
            assert sum(point.shares.values()) == pytest.approx(1)


def test_waits_are_by_tenant_and_class_in_the_order_of_weights(report: Report) -> None:
    assert list(report.runs[0].by_class) == [(tenant, "normal") for tenant in WEIGHTS]


class Links(HTMLParser):
    """Collects whatever a browser would fetch, and checks that tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data", "srcset")
        ]
        if tag not in ("meta", "link", "br", "img", "hr", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(report: Report) -> None:
    page = render_page(report)
    links = Links()
    links.feed(page)
    assert links.open == []
    assert links.fetched == []
    assert not re.search(r"https?://|@import|url\(|<script", page)
    assert page.count("<svg") == 3


def test_names_are_escaped(report: Report) -> None:
    page = render_page(report)
    assert "a&lt;b&gt;" in page
    assert "<b>" not in page.replace('<b class="">', "")
    assert "made &amp; canned" in page


def test_the_text_has_the_same_figures(report: Report) -> None:
    console = Console(file=io.StringIO(), width=140, force_terminal=False)
    console.print(render_text(report))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for part in (
        "120 jobs submitted, 120 finished, 0 lost",
        "Jain index",
        "team-c",
        "made & canned",
        "50.0%",
    ):
        assert part in text


def test_without_contention_there_is_no_share_to_judge() -> None:
    report = canned(jobs=1)
    assert report.figures.jain is None
    assert all(tenant.share is None for tenant in report.figures.tenants)
    assert UNCONTENDED in render_page(report)
    console = Console(file=io.StringIO(), width=140, force_terminal=False)
    console.print(render_text(report))
    assert isinstance(console.file, io.StringIO)
    assert UNCONTENDED in console.file.getvalue()
