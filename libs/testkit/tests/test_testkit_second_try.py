"""A test of real processes is tried once more in CI, and nowhere else, and no other test is."""

import pytest

from fairlead_testkit.pytest_plugin.inner_runs import OPTIONS, UNUSED

pytest_plugins = ["pytester"]

FAILS_ONCE = """
import pathlib

import pytest

@pytest.mark.{marker}
def test_that_fails_once():
    been = pathlib.Path(__file__ + "-been")
    if not been.exists():
        been.touch()
        raise AssertionError("the first attempt's words")
"""


def run(pytester: pytest.Pytester, *markers: str) -> pytest.RunResult:
    """Runs one test with each marker, in a run of its own."""
    pytester.makeini("[pytest]\nmarkers =\n    kube\n    integration\n    chaos\n    deep\n")
    for marker in markers:
        pytester.makepyfile(**{f"test_{marker}": FAILS_ONCE.format(marker=marker)})
    return pytester.runpytest_subprocess(*OPTIONS, *UNUSED)


def test_in_ci_a_test_of_real_processes_is_tried_once_more_and_both_attempts_are_told(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    result = run(pytester, "integration", "chaos")
    assert result.parseoutcomes() == {"passed": 2, "rerun": 2}
    result.stdout.fnmatch_lines(["*rerun test summary info*", "*the first attempt's words*"])


def test_in_ci_a_test_that_needs_no_process_has_one_attempt(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    assert run(pytester, "deep").parseoutcomes() == {"failed": 1}


def test_in_ci_a_run_has_two_second_tries_and_no_third(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(test_more=FAILS_ONCE.format(marker="integration"))
    assert run(pytester, "integration", "chaos").parseoutcomes() == {"failed": 1, "passed": 2, "rerun": 2}


def test_outside_ci_the_first_failure_counts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert run(pytester, "integration").parseoutcomes() == {"failed": 1}
