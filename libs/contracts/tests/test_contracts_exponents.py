"""Numbers with an exponent that YAML takes for text: the refusal says how to write them."""

import pytest
import yaml

from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.base.quantities import exponent_hint
from fairlead_contracts.policyfile.read import read_document
from fairlead_contracts.snapshot.read import read_snapshot


def refused(text: str, *, snapshot: bool = False) -> FieldError:
    found = yaml.safe_load(text)
    with pytest.raises(DocumentError) as caught:
        read_snapshot(found) if snapshot else read_document(found)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("text", "field", "forms"),
    [
        ("tenants: [{name: a, weight: 1e3}]", "tenants[0].weight", "1000 or 1.0e+3"),
        ("window: 2E1", "window", "20"),
        ("half_life_hours: 1.5e2", "half_life_hours", "150 or 1.5e+2"),
        ("aging: {entitlement_per_day: 6e-2}", "aging.entitlement_per_day", "0.06 or 6.0e-2"),
        ("resource_weights: {cpu: 1e1}", "resource_weights.cpu", "10 or 1.0e+1"),
        ("unlisted_weight: 1e+90", "unlisted_weight", "1.0e+90"),
    ],
)
def test_a_policy_says_how_to_write_it(text: str, field: str, forms: str) -> None:
    problem = refused(text)
    assert problem.field == field
    assert problem.reason.endswith(f"; this is text: write the number {forms}, without quotes")


AROUND = "{now: %s, pools: [{name: p, capacity: {cpu: 1e3}}], tenants: [{name: a}], jobs: [%s]}"


@pytest.mark.parametrize(
    ("now", "job", "field"),
    [
        ("1.76e9", "", "now"),
        ("1", "{id: j, tenant: a, submitted: 1e3, demand: {}}", "jobs[0].submitted"),
        ("1", "{id: j, tenant: a, submitted: 1, demand: {}, runtime_limit: 36e2}", "jobs[0].runtime_limit"),
        ("1", "{id: j, tenant: a, submitted: 1, demand: {}, level: 1e1}", "jobs[0].level"),
    ],
)
def test_a_snapshot_says_how_to_write_it(now: str, job: str, field: str) -> None:
    problem = refused(AROUND % (now, job), snapshot=True)
    assert problem.field == field
    assert "; this is text: write the number " in problem.reason


@pytest.mark.parametrize(
    "found", [1000, 1e3, None, "", "e3", "1000", "1e", "0x1e3", "1e9999", "team-1e3", ["1e3"]]
)
def test_nothing_is_said_of_what_is_no_such_number(found: object) -> None:
    assert not exponent_hint(found)


def test_a_whole_number_is_not_written_with_an_exponent() -> None:
    assert "1000," in exponent_hint("1e3", whole=True)
    assert not exponent_hint("1e-3", whole=True)


@pytest.mark.parametrize("text", ["1e3", "-2.5E-7", "+1.e+3", ".5e1", "123456789e90", "0e0"])
def test_yaml_takes_each_form_for_the_number(text: str) -> None:
    forms = (
        exponent_hint(text).removeprefix("; this is text: write the number ").removesuffix(", without quotes")
    )
    for form in forms.split(" or "):
        assert yaml.safe_load(form) == float(text)
