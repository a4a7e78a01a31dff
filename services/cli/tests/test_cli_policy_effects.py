"""What a policy says without effect is told wherever it is read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_cli.policy_effects import without_effect
from fairlead_cli.policy_looking import check_file, print_file
from fairlead_contracts.document import read_document

WEIGHTS = {"urgent": 1000, "approved": 100, "normal": 1}
SAID = "warning: class_weights have no effect with class_mode strict"


def test_weights_of_strict_classes_are_told_by_check_show_and_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, snapshot = tmp_path / "policy.yaml", tmp_path / "snapshot.json"
    policy.write_text(json.dumps({"class_weights": WEIGHTS}))
    pools = [{"name": "p", "capacity": {"cpu": 1}}]
    snapshot.write_text(json.dumps({"now": 0, "policy": {"class_weights": WEIGHTS}, "pools": pools}))
    check_file(policy)
    assert SAID in capsys.readouterr().err
    print_file(policy, as_json=True)
    assert SAID in capsys.readouterr().err
    order = [sys.executable, "-m", "fairlead_cli", "order", str(snapshot)]
    assert SAID in subprocess.run(order, capture_output=True, text=True, check=True, timeout=30).stderr


@pytest.mark.parametrize(
    "found", [{}, {"class_mode": "wdrf"}, {"class_mode": "multiplicative", "class_weights": WEIGHTS}]
)
def test_what_has_an_effect_is_passed_over(found: dict[str, object]) -> None:
    assert list(without_effect(read_document(found))) == []
