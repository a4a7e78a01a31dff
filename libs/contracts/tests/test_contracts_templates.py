import json

import pytest

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.templates import JobTemplate, read_template
from fairlead_contracts.messages.submissions import read_submission


def test_a_template_in_full() -> None:
    found = {
        "image": "registry.example/train:1",
        "kind": "pytorch-job",
        "command": ["python", "train.py"],
        "args": ["--epochs", "3"],
        "env": {"LR": "0.1"},
        "working_dir": "/work",
        "node_selector": {"gpu.product": "H100"},
        "annotations": {"example.com/owner": "me"},
    }
    assert read_template(found) == JobTemplate(**found)  # type: ignore[arg-type] # values as a parser gives them


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"image": "two words"}, "template.image"),
        ({"image": 3}, "template.image"),
        ({"kind": "daemon"}, "template.kind"),
        ({"hostPath": "/"}, "template.hostPath"),
        ({"service_account": "admin"}, "template.service_account"),
        ({"command": "python"}, "template.command"),
        ({"args": ["x"] * 300}, "template.args"),
        ({"env": {"A B": "1"}}, "template.env.A B"),
        ({"working_dir": "relative"}, "template.working_dir"),
        ({"node_selector": {"a b": "c"}}, "template.node_selector.a b"),
        ({"annotations": {"wdrf.x-k8s.io/urgent": "true"}}, "template.annotations.wdrf.x-k8s.io/urgent"),
        (
            {"annotations": {"kueue.x-k8s.io/priority-boost": "9"}},
            "template.annotations.kueue.x-k8s.io/priority-boost",
        ),
        (
            {"annotations": {"container.apparmor.security.beta.kubernetes.io/x": "unconfined"}},
            "template.annotations.container.apparmor.security.beta.kubernetes.io/x",
        ),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(change: dict[str, object], field: str) -> None:
    with pytest.raises(FieldError) as refused:
        read_template({"image": "x", **change})
    assert refused.value.field == field


def test_a_submission_carries_its_template() -> None:
    body = {"demand": {"cpu": 1}, "template": {"image": "x"}}
    read = read_submission(json.dumps(body).encode(), tenant="team-a", fallback_id="s1")
    assert read.template == JobTemplate(image="x")
    with pytest.raises(FieldError, match=r"template: needs an image"):
        read_submission(json.dumps({**body, "template": {}}).encode(), tenant="team-a", fallback_id="s1")
