"""Logs: one JSON object a line, whatever is logged, from us and from other libraries."""

import functools
import json
import subprocess
import sys

import pytest

from fairlead_testkit.processes.fresh_interpreter import printed_by

PROGRAM = """
import logging, sys, warnings
import structlog
from fairlead_runtime.logs import configure_logging

configure_logging(sys.argv[1], "demo", "r1")
log = structlog.get_logger()
log.debug("detail")
log.info("claimed", pool="c1/gpu", shard=3, at_once=True)
log.warning("odd")
with structlog.contextvars.bound_contextvars(submission="s1"):
    log.info("taken")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("broke")
logging.getLogger("nats").info("detail of others")
logging.getLogger("nats").warning("lost %s", "it")
logging.getLogger("nats").error("cannot be formatted: %d", "x")
warnings.warn("old")
log.warning("hard", thing=object(), number=float("nan"), raw=b"\\xff")
log.warning("harder", lone="\\ud800", keys={(1, 2): 3})
log.error("last")
"""


@functools.cache
def lines(level: str) -> dict[str, dict[str, object]]:
    """Lines by event."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, level], capture_output=True, text=True, check=True, timeout=30
    )
    assert found.stdout == ""
    parsed = [json.loads(line) for line in found.stderr.splitlines() if line.startswith("{")]
    return {str(line["event"]).strip("'"): line for line in parsed}


def test_a_line_has_event_time_level_service_and_facts() -> None:
    line = dict(lines("info")["claimed"])
    assert line.pop("at")
    assert line == {
        "event": "claimed", "level": "info", "service": "demo", "replica": "r1",
        "pool": "c1/gpu", "shard": 3, "at_once": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("level", "absent"), [("info", {"detail"}), ("warning", {"detail", "claimed", "taken"})]
)
def test_lines_below_the_level_are_not_written(level: str, absent: set[str]) -> None:
    assert not absent & set(lines(level))
    assert {"odd", "broke", "last"} <= set(lines(level))


def test_bound_ids_are_on_the_lines_within() -> None:
    assert lines("info")["taken"]["submission"] == "s1"
    assert "submission" not in lines("info")["last"]


def test_errors_carry_their_traceback() -> None:
    assert "ZeroDivisionError" in str(lines("info")["broke"]["exception"])


def test_other_libraries_speak_in_the_same_form_from_warning_on() -> None:
    assert lines("info")["lost it"]["logger"] == "nats"
    assert "detail of others" not in lines("info")
    assert any(line.get("logger") == "py.warnings" for line in lines("info").values())


def test_what_json_cannot_hold_is_written_all_the_same() -> None:
    assert lines("info")["hard"]["number"] is None
    assert "object" in str(lines("info")["hard"]["thing"])
    assert "harder" in lines("info")
    assert "last" in lines("info")


def test_a_service_does_without_rich_and_whoever_asks_for_it_has_it() -> None:
    assert (
        printed_by(
            "import fairlead_runtime.service, sys; print('rich' in sys.modules); import rich; print(rich.__name__)"
        )
        == "False\nrich"
    )
