"""Logs: one JSON object a line, whatever is logged, from us and from other libraries."""

import json
import subprocess
import sys

SETUP = "import logging, structlog; from fairlead_runtime import configure_logging; configure_logging('{level}', 'demo', 'r1'); log = structlog.get_logger();"


def lines(code: str, level: str = "info") -> list[dict[str, object]]:
    found = subprocess.run(
        [sys.executable, "-c", SETUP.format(level=level) + code],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert found.stdout == ""
    return [json.loads(line) for line in found.stderr.splitlines()]


def test_a_line_has_event_time_level_service_and_facts() -> None:
    [line] = lines("log.info('claimed', pool='c1/gpu', shard=3, at_once=True)")
    assert line.pop("at")
    assert line == {
        "event": "claimed", "level": "info", "service": "demo", "replica": "r1",
        "pool": "c1/gpu", "shard": 3, "at_once": True,
    }  # fmt: skip


def test_lines_below_the_level_are_not_written() -> None:
    code = "log.debug('detail'); log.info('fact'); log.warning('odd')"
    assert [line["event"] for line in lines(code, "warning")] == ["odd"]
    assert [line["event"] for line in lines(code, "debug")] == ["detail", "fact", "odd"]


def test_bound_ids_are_on_every_line() -> None:
    [line] = lines("structlog.contextvars.bind_contextvars(submission='s1'); log.info('taken')")
    assert line["submission"] == "s1"


def test_errors_carry_their_traceback() -> None:
    [line] = lines("\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    log.exception('broke')")
    assert "ZeroDivisionError" in str(line["exception"])


def test_other_libraries_speak_in_the_same_form_from_warning_on() -> None:
    found = lines(
        "logging.getLogger('nats').info('detail'); logging.getLogger('nats').warning('lost %s', 'it');"
        "import warnings; warnings.warn('old')"
    )
    assert [line["logger"] for line in found] == ["nats", "py.warnings"]
    assert found[0]["event"] == "lost it"


def test_what_json_cannot_hold_is_written_all_the_same() -> None:
    found = lines(
        "log.info('odd', thing=object(), lone='\\ud800', number=float('nan'), raw=b'\\xff', keys={(1, 2): 3});"
        "log.info('next')"
    )
    assert [line["event"] for line in found] == ["odd", "next"] or found[0]["event"] == "'odd'"
    assert found[1]["event"] == "next"
