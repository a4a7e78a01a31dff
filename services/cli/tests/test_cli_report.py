import io
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import msgspec
import pytest
from rich.console import Console

from fairlead_cli.demo.comparing import compare, report_on
from fairlead_cli.demo.report.contents import DemoReport, ExplainedJob, JobStory, made_in_words
from fairlead_cli.demo.report.figures import BINS, TenantFigures, off_entitlement
from fairlead_cli.demo.report.findings import UNCONTENDED, against_fifo, finding
from fairlead_cli.demo.report.page import render_page
from fairlead_cli.demo.report.text import render_text
from fairlead_sim.config import NodeGroup
from fairlead_sim.virtual import VirtualRun, fifo
from fairlead_sim.workload import SimWorkload
from fairlead_testkit.inputs.equal_floods import equal_floods

WEIGHTS = {"a<b>": 3.0, "team-b": 2.0, "team-c": 1.0}
NODES = NodeGroup(name="node", count=2, allocatable={"nvidia.com/gpu": 8, "cpu": 64, "memory": "512Gi"})


def flood(jobs: int) -> SimWorkload:
    return equal_floods(WEIGHTS, jobs=jobs, run_seconds=2.0, nodes=NODES, starts={"team-c": 1.0})


def canned(jobs: int = 40) -> DemoReport:
    workload = flood(jobs)
    result = VirtualRun(workload, fifo).run()
    return report_on(
        workload, result, compare(workload), finished=len(workload.jobs), lost=0, facts=["made & canned"]
    )


@pytest.fixture(scope="module")
def report() -> DemoReport:
    return canned()


def test_a_run_on_a_machine_that_was_too_busy_claims_nothing() -> None:
    workload = flood(40)
    result = VirtualRun(workload, fifo).run()
    others = compare(workload)
    quiet, busy = (
        report_on(workload, result, others, finished=120, lost=0, facts=[], delays=[late] * 120)
        for late in (0.4, 20.0)
    )
    assert not quiet.overload
    assert "came 20 s late or more" in busy.overload
    console = Console(file=io.StringIO(), width=200)
    console.print(render_text(busy))
    shown = console.file.getvalue() if isinstance(console.file, io.StringIO) else ""
    for text in (render_page(busy), shown):
        assert "This machine was too busy" in text
        assert "FIFO gave" not in text
        assert "from their entitlement" not in text


def test_the_printed_figures_have_exactly_these_keys(report: DemoReport) -> None:
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


def test_equal_floods_under_fifo_are_far_from_their_weights(report: DemoReport) -> None:
    assert {tenant.name for tenant in off_entitlement(report.figures)} >= {"team-c"}
    assert report.figures.jain is not None
    assert report.figures.jain < 0.99


def test_shares_over_time_are_means_that_sum_to_the_whole(report: DemoReport) -> None:
    for run in report.runs:
        assert 0 < len(run.course) <= BINS
        for point in run.course:
            assert sum(point.shares.values()) == pytest.approx(1)


def test_waits_are_by_tenant_and_class_in_the_order_of_weights(report: DemoReport) -> None:
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


def test_the_page_stands_alone(report: DemoReport) -> None:
    page = render_page(report)
    links = Links()
    links.feed(page)
    assert links.open == []
    assert links.fetched == []
    assert not re.search(r"https?://|@import|url\(|<script", page)
    assert page.count("<svg") == 3


def test_the_page_opens_with_what_was_found_and_says_how_it_was_made(report: DemoReport) -> None:
    made = made_in_words(datetime(2026, 11, 22, 9, 5, tzinfo=UTC), "1.2", "fairlead demo --seed 7")
    page = render_page(msgspec.structs.replace(report, made=made))
    said = finding(report.figures, report.runs)
    assert page.index(said.replace("<", "&lt;").replace(">", "&gt;")) < page.index("<section")
    assert "Made on 2026-11-22 09:05 UTC by Fairlead 1.2 with: fairlead demo --seed 7" in page


def a_tenant(name: str, weight: float, share: float, fifo: float) -> TenantFigures:
    return TenantFigures(
        name=name,
        weight=weight,
        entitlement=weight / 6,
        share=share,
        share_fifo=fifo,
        wait_p50=1.0,
        wait_p90=2.0,
        jobs=10,
    )


@pytest.mark.parametrize(
    ("shares", "fifo", "said"),
    [
        ((0.5, 0.33, 0.17), (0.3, 0.33, 0.37), "FIFO gave c, the lightest tenant, 2.2 times its share"),
        ((0.5, 0.33, 0.17), (0.1, 0.6, 0.3), "FIFO gave a, the heaviest tenant, 20% of its share"),
        ((0.5, 0.33, 0.17), (0.3, 0.33, 0.37), "Fairlead kept all three within 2 % of theirs"),
        ((0.4, 0.43, 0.17), (0.3, 0.33, 0.37), "Fairlead left b 29% off its share"),
    ],
)
def test_the_finding_names_who_was_treated_worst_and_how_far_shares_were_kept(
    report: DemoReport, shares: tuple[float, ...], fifo: tuple[float, ...], said: str
) -> None:
    tenants = [a_tenant(*one) for one in zip("abc", (3.0, 2.0, 1.0), shares, fifo, strict=True)]
    assert said in finding(msgspec.structs.replace(report.figures, tenants=tenants), report.runs)


def test_the_finding_tells_what_urgent_jobs_waited(report: DemoReport) -> None:
    ours, fifo = (
        msgspec.structs.replace(run, first_class="urgent", first_class_wait=wait)
        for run, wait in zip(report.runs, (0.2, 20.4), strict=False)
    )
    assert finding(report.figures, [ours, fifo]).endswith("; urgent jobs waited 0.2 s instead of 20 s.")
    nobody = msgspec.structs.replace(fifo, first_class_wait=None)
    assert "urgent" not in finding(report.figures, [ours, nobody])


@pytest.mark.parametrize(
    ("share", "fifo", "said"),
    [(0.4, 0.3, "▲ gains 10.0 points"), (0.3, 0.4, "▼ pays 10.0 points"), (0.3, 0.302, "the same")],
)
def test_who_gains_and_who_pays_is_marked_in_words(share: float, fifo: float, said: str) -> None:
    assert against_fifo(a_tenant("a", 3.0, share, fifo)) == said


def test_one_job_is_followed_with_what_was_said_of_it() -> None:
    workload = flood(40)
    result = VirtualRun(workload, fifo).run()
    job = result.jobs[-1]
    told = ExplainedJob(job=job.id, tenant=job.tenant, demand="1 gpu", waited_then=3.0, text="<waits>")
    found = report_on(workload, result, compare(workload), finished=120, lost=0, facts=[], told=told)
    assert isinstance(found.story, JobStory)
    assert found.story.waited == found.story.waited_fifo == job.waited > 3
    assert "<span>&lt;waits&gt;</span>" in render_page(found)
    early = msgspec.structs.replace(found.story, submitted=-0.3)
    assert "asked for 1 gpu at the start and started" in early.in_words()
    never = msgspec.structs.replace(told, job="never-started")
    assert (
        report_on(workload, result, compare(workload), finished=0, lost=0, facts=[], told=never).story is None
    )


def test_no_line_leaves_its_plot_and_marks_differ_by_more_than_colour(report: DemoReport) -> None:
    page = render_page(report)
    points = [pair for line in re.findall(r'points="([^"]+)"', page) for pair in line.split()]
    heights = [float(pair.split(",")[1]) for pair in points]
    assert 26 <= min(heights) < max(heights) <= 146
    tops = {share for run in report.runs for point in run.course for share in point.shares.values()}
    assert max(tops) > max(tenant.entitlement for tenant in report.figures.tenants)
    for glyph in "●■▲":
        assert f">{glyph}</i>" in page
    assert page.count("stroke-dasharray") >= 3


def test_names_are_escaped(report: DemoReport) -> None:
    page = render_page(report)
    assert "a&lt;b&gt;" in page
    assert "<b>" not in page
    assert "made &amp; canned" in page


def test_the_text_has_the_same_figures(report: DemoReport) -> None:
    console = Console(file=io.StringIO(), width=140, force_terminal=False)
    console.print(render_text(report))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for part in (
        "120 jobs submitted, 120 finished, 0 lost",
        "Jain's index",
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
