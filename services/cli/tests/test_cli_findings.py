"""Findings as a person reads them."""

import pytest
from rich.console import Group

from fairlead_cli.findings import findings_view, warning
from fairlead_cli.printing import Result, print_result


def test_a_command_that_mends_is_never_cut_at_the_edge(capsys: pytest.CaptureFixture[str]) -> None:
    mend = "kubectl patch " + "x" * 400
    found = [warning("name", "Kind/one", "it is so", why="that is bad", mend=mend)]
    result = Result(
        document=lambda: found, view=lambda _columns: Group(*findings_view(found)), names=lambda: ["name"]
    )
    print_result(result, "table")
    assert mend in capsys.readouterr().out
