"""Findings as a person reads them."""

import pytest
from rich.console import Console, Group

from fairlead_cli.findings import Finding, Severity, findings_view, warning
from fairlead_cli.printing import Result, print_result


def test_a_command_that_mends_is_never_cut_at_the_edge(capsys: pytest.CaptureFixture[str]) -> None:
    mend = "kubectl patch " + "x" * 400
    found = [warning("name", "Kind/one", "it is so", why="that is bad", mend=mend)]
    result = Result(
        document=lambda: found, view=lambda _columns: Group(*findings_view(found)), names=lambda: ["name"]
    )
    print_result(result, "table")
    assert mend in capsys.readouterr().out


def test_what_is_to_be_done_stands_behind_what_was_fine() -> None:
    fine = Finding(name="a", severity=Severity.OK, subject="quota", what="no quota goes first")
    found = [warning("name", "Kind/one", "it is so", why="that is bad"), fine]
    console = Console(width=80)
    with console.capture() as said:
        console.print(Group(*findings_view(found)))
    lines = [line for line in said.get().splitlines() if line.strip()]
    assert lines[0].startswith("✓ quota")
    assert lines[-1].strip() == "that is bad"
