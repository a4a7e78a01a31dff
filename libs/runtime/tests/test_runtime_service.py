"""The life of a service, as a process: start, readiness, signals, failures, exit codes."""

import asyncio
import http.client
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead_runtime.health import HealthReport, ask_health
from fairlead_testkit import ServiceProcess, eventually

type Start = Callable[..., ServiceProcess]

NO_ANSWER = "does not answer"


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Start:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))

    def start(*arguments: str, **settings: object) -> ServiceProcess:
        process = ServiceProcess("demo", tmp_path, settings, arguments, module="demo_service").start()
        request.addfinalizer(process.kill)
        return process

    return start


def get(port: int, path: str, accept: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=40)
    try:
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


async def test_it_starts_says_how_serves_and_ends_cleanly(demo: Start) -> None:
    process = demo(nats_password="hunter2", licence="mine", replica="demo-7")  # noqa: S106 # a test's
    await process.ready()
    started = await process.logged("starting")
    assert started["service"] == "demo"
    assert started["replica"] == "demo-7"
    settings = started["settings"]
    assert isinstance(settings, dict)
    assert (settings["nats_password"], settings["licence"], settings["nats_token"]) == (
        "(hidden)",
        "(hidden)",
        None,
    )
    assert "hunter2" not in process.log
    assert "mine" not in process.log
    assert await process.stop() == 0
    over = [line["task"] for line in process.events() if line["event"] == "task over"]
    assert over == ["second", "first"], "the last started ends first"


async def test_health_readiness_and_metrics_over_http(demo: Start) -> None:
    process = await demo(mode="serve").ready()
    port = await process.health_port()
    assert get(port, "/healthz") == get(port, "/health") == (200, '{"alive": true}')
    assert get(port, "/readyz") == (200, '{"ready":true,"reasons":{}}')
    status, plain = get(port, "/metrics")
    assert status == 200
    assert "fairlead_demo_ready_since_timestamp_seconds" in plain
    assert "process_resident_memory_bytes" in plain
    assert "# EOF" not in plain
    _, open_metrics = get(port, "/metrics", "application/openmetrics-text; version=1.0.0")
    assert open_metrics.endswith("# EOF\n")
    assert await asked_from_outside(process) == (0, "ready\n")


async def asked_from_outside(process: ServiceProcess) -> tuple[int, str]:
    """The exit code and the words of `--health-check`."""
    port = str(await process.health_port())

    async def answer() -> tuple[int, str] | None:
        check = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "demo_service", "--health-check", "--health-port", port),
            stdout=subprocess.PIPE,
        )
        said, _ = await check.communicate()
        return None if NO_ANSWER in said.decode() else (check.returncode or 0, said.decode())

    return await eventually(answer, 40, what="there is an answer in time")


async def told(process: ServiceProcess) -> HealthReport:
    """The process's word on its health; asked again where a machine that stood still kept the answer back."""

    async def answer() -> HealthReport | None:
        report = await process.health()
        return None if NO_ANSWER in str(report.reasons) else report

    return await eventually(answer, 40, what="there is an answer in time")


async def test_the_reasons_for_not_being_ready_are_given(demo: Start) -> None:
    process = demo(mode="refuse")
    await process.logged("serving")
    report = await told(process)
    assert not report.ready
    assert report.reasons == {"state": "the replay is not complete"}
    assert await asked_from_outside(process) == (1, "state: the replay is not complete\n")


@pytest.mark.parametrize(
    ("port", "said"), [(1, "does not answer"), (0, "names no port"), (-1, "names no port")]
)
def test_why_nobody_answers_is_a_reason_too(port: int, said: str) -> None:
    report = ask_health("127.0.0.1", port)
    assert not report.ready
    assert said in str(report.reasons)


async def test_a_task_that_fails_ends_the_process_with_its_error(demo: Start) -> None:
    process = demo(mode="fail")
    assert await process.ended() == 1
    failed = await_event(process, "failed")
    assert failed["kind"] == "ValueError"
    assert failed["error"] == "the demonstration failed"
    assert "in fail" in str(failed["exception"])


async def test_a_clean_up_that_fails_is_told_and_the_others_still_end(demo: Start) -> None:
    process = await demo(mode="untidy").ready()
    assert await process.stop() == 1
    assert await_event(process, "failed")["error"] == "the clean-up failed"
    assert {line["task"] for line in process.events() if line["event"] == "task over"} == {"first", "second"}


async def test_a_task_that_ends_unasked_ends_the_process(demo: Start) -> None:
    process = demo(mode="end")
    assert await process.ended() == 1
    failed = await_event(process, "failed")
    assert failed["kind"] == "TaskEndedError"
    assert "ending" in str(failed["error"])
    assert "exception" not in failed, "a foreseen error needs no traceback"


def await_event(process: ServiceProcess, event: str) -> dict[str, object]:
    return next(line for line in process.events() if line["event"] == event)


async def test_a_signal_on_the_way_up_ends_it_cleanly(demo: Start) -> None:
    process = demo(mode="climb")
    await process.logged("climbing")
    assert not (await process.health()).ready
    assert await process.stop() == 0


async def test_a_second_signal_ends_it_at_once(demo: Start) -> None:
    process = demo(mode="stubborn")
    await process.ready()
    process.signal(signal.SIGINT)
    await process.logged("not yet")
    assert (await told(process)).reasons == {"stop": "the service is stopping"}
    process.signal(signal.SIGTERM)
    assert await process.ended() == 128 + signal.SIGTERM


async def test_an_end_that_takes_too_long_is_cut_short_and_says_who_hung(demo: Start) -> None:
    process = demo(mode="stubborn", shutdown_seconds=0.3)
    await process.ready()
    assert await process.stop() == 128 + signal.SIGTERM
    killed = await_event(process, "killed")
    assert "stubborn" in str(killed["tasks"])


async def test_wrong_settings_are_told_all_at_once(demo: Start) -> None:
    process = demo("--log-level", "loud", health_port="70000", mode="dance")
    assert await process.ended() == 2
    assert "--log-level" in process.log
    assert "FAIRLEAD_HEALTH_PORT" in process.log
    assert "FAIRLEAD_MODE" in process.log
    assert "Traceback" not in process.log


async def test_a_health_port_that_is_taken_is_a_clear_error(demo: Start, tmp_path: Path) -> None:
    first = await demo().ready()
    second = ServiceProcess(
        "demo", tmp_path, {"health_port": await first.health_port()}, module="demo_service", name="second"
    )
    with second:
        assert await second.ended() == 1
    assert "cannot be opened" in second.log


async def test_no_health_port_where_none_is_wanted(demo: Start) -> None:
    process = demo(health_port=-1)
    await process.logged("serving")
    assert (await process.logged("health listening"))["port"] == -1
    assert await process.stop() == 0


@pytest.mark.usefixtures("demo")
def test_help_says_what_each_setting_is() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "demo_service", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    text = " ".join(found.stdout.split())
    assert "Course of the demonstration. [FAIRLEAD_MODE, default serve]" in text
    assert "--dry-run" in text
    assert "--health-check" in text
    assert "--nats-password" not in text, "a command line is no place for a secret"


async def test_a_service_that_comes_to_hold_much_is_not_stopped_by_full_collections(demo: Start) -> None:
    process = demo(mode="grow")
    assert (await process.logged("grown"))["full_collections"] == 0
