"""Configurations of the DRF and WDRF controllers, read as the policy that their formula means."""

import pytest

from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.older_controllers import from_environment
from fairlead_contracts.policyfile.read import decode_document, encode_document, read_document

README_CONFIGMAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "drf-controller-config", "namespace": "drf-system"},
    "data": {
        "aging_alpha": "0.1",
        "max_aging_hours": "336",
        "priority_weights": {"urgent": "0", "normal": "1000"},
    },
}
SHIPPED_CONFIGMAP = {
    "kind": "ConfigMap",
    "data": {
        "aging_alpha": "0.2",
        "check_interval": "30",
        "approved_weight": "0",
        "normal_weight": "500",
        "gang_scheduling_enabled": "true",
        "log_level": "INFO",
        "kueue_namespace": "kueue-system",
        "queue_name": "default",
        "resource_types": "- cpu\n- gpu\n- memory",
    },
}
CONFIG_YAML = {
    "LOOP_INTERVAL": 30,
    "AGING_COEFFICIENT": 0.1,
    "MAX_AGING_TIME": 3600,
    "LOG_LEVEL": "INFO",
    "PRIORITY_WEIGHTS": {"urgent": 1000, "approved": 100, "normal": 1},
    "RESOURCE_WEIGHTS": {
        "cpu": 1.0,
        "memory": 1.0,
        "nvidia.com/gpu": 10.0,
        "nvidia.com/gpucores": 0.1,
        "nvidia.com/gpumem-percentage": 0.1,
    },
}


def problems_of(found: object) -> set[str]:
    with pytest.raises(DocumentError) as refused:
        read_document(found)
    return {problem.field for problem in refused.value.problems}


def preset(name: str) -> PolicyDocument:
    return read_document({"class_mode": name, "unlisted_weight": 1})


def test_the_documented_configurations_are_the_presets() -> None:
    assert read_document(README_CONFIGMAP) == preset("drf")
    weighed = read_document(CONFIG_YAML)
    weights = dict(weighed.resource_weights)
    assert weights.pop("nvidia.com/gpumem") == 0.1, (
        "what a percentage of it is counted as, where cards are known"
    )
    assert weights == CONFIG_YAML["RESOURCE_WEIGHTS"]
    assert read_document({k: v for k, v in CONFIG_YAML.items() if k != "RESOURCE_WEIGHTS"}) == preset("wdrf")


def test_the_configmap_that_ships_and_its_data_alone_are_read() -> None:
    found = read_document(SHIPPED_CONFIGMAP)
    assert (found.class_mode, found.class_weights) == ("additive", {"urgent": 0, "normal": 500})
    assert (found.aging.entitlement_per_day, found.aging.cap_days) == (17_280, 14)
    assert read_document(SHIPPED_CONFIGMAP["data"]) == found
    assert decode_document(encode_document(found)) == found


@pytest.mark.parametrize("text", ["urgent: 0\nnormal: 1000", '{"urgent": 0, "normal": 1000}'])
def test_weights_may_be_a_string_as_a_configmap_must_have_them(text: str) -> None:
    assert read_document({"kind": "ConfigMap", "data": {"priority_weights": text}}) == preset("drf")


def test_an_environment_is_read_and_its_strings_are_numbers() -> None:
    found = from_environment(
        "# the controller's\nLOOP_INTERVAL=30\nexport AGING_COEFFICIENT='0.5'\n\nMAX_AGING_TIME=7200\n"
    )
    assert found is not None
    document = read_document(found)
    assert (document.aging.entitlement_per_day, document.aging.cap_days) == (43_200, 2 / 24)
    assert document.classes == ["urgent", "approved", "normal"]


def test_a_configmap_is_the_controllers_whose_keys_it_has() -> None:
    data = {"LOOP_INTERVAL": "30", "AGING_COEFFICIENT": "0.5", "MAX_AGING_TIME": "7200", "TZ": "Asia/Seoul"}
    found = read_document({"kind": "ConfigMap", "data": data})
    assert (found.class_mode, found.divide_by, found.aging.entitlement_per_day) == (
        "multiplicative",
        "weight",
        43_200,
    )
    assert read_document({"kind": "ConfigMap", "data": {"LOOP_INTERVAL": "30"}}) == preset("wdrf")
    assert read_document({"kind": "ConfigMap", "data": {"log_level": "INFO"}}) == preset("drf")
    wrong = {"AGING_COEFFICIENT": "fast", "MAX_AGEING_TIME": "1"}
    assert problems_of({"kind": "ConfigMap", "data": wrong}) == {
        "data.AGING_COEFFICIENT",
        "data.MAX_AGEING_TIME",
    }
    mixed = {"aging_alpha": "0.1", "AGING_COEFFICIENT": "0.1"}
    assert problems_of({"kind": "ConfigMap", "data": mixed}) == {"data.AGING_COEFFICIENT"}


def test_variables_of_other_programs_are_passed_over_and_misspelled_ones_are_not() -> None:
    text = "PATH=/bin\nPYTHONUNBUFFERED=1\nAGING_COEFFICIENT=0.5\nNVIDIA_VISIBLE_DEVICES=all\nTZ=UTC\n"
    found = from_environment(text)
    assert found is not None
    assert read_document(found).aging.entitlement_per_day == 43_200
    for name in (
        "AGING_COEFICIENT",
        "MAX_AGING",
        "PRIORITY_WEIGHT",
        "RESOURCES_WEIGHTS",
        "AGEING_COEFFICIENT",
    ):
        misspelled = from_environment(f"LOOP_INTERVAL=30\n{name}=1\n")
        assert misspelled is not None
        assert problems_of(misspelled) == {name}


@pytest.mark.parametrize(
    "text", ["", "classes: [a]", "PATH=/bin", "AGING_COEFFICIENT: 0.1", "a=b\nLOOP_INTERVAL=3"]
)
def test_what_is_no_environment_of_the_controller_is_left_alone(text: str) -> None:
    assert from_environment(text) is None


def test_no_aging_at_all_is_no_cap_of_nothing() -> None:
    assert read_document({"AGING_COEFFICIENT": "0.1", "MAX_AGING_TIME": "0"}).aging.entitlement_per_day == 0


def test_what_is_wrong_is_told_by_the_keys_of_the_file() -> None:
    data = {"aging_alpha": "fast", "max_aging_hours": "-1", "priority_weights": "?", "agingalpha": "1"}
    assert problems_of({"kind": "ConfigMap", "data": data}) == {
        "data.aging_alpha",
        "data.max_aging_hours",
        "data.priority_weights",
        "data.agingalpha",
    }
    assert problems_of({"AGING_COEFFICIENT": "nan", "PRIORITY_WEIGHTS": {"a": True}, "X": 1}) == {
        "AGING_COEFFICIENT",
        "PRIORITY_WEIGHTS.a",
        "X",
    }
    assert problems_of({"kind": "ConfigMap", "data": None}) == {"data"}


TOO_MUCH: list[tuple[dict[str, object], str]] = [
    (
        {"AGING_COEFFICIENT": 1.0e9},
        (
            "AGING_COEFFICIENT: is 86400000000000.0 a day, which must be a number from 0 to 1,000,000,000,000 "
            "(found 1000000000.0)"
        ),
    ),
    (
        {"MAX_AGING_TIME": 1.0e12},
        (
            "MAX_AGING_TIME: is 11574074.074074075 days, which must be above 0, and at most 1,000,000 "
            "(found 1000000000000.0)"
        ),
    ),
    (
        {"PRIORITY_WEIGHTS": {"urgent": 2, "normal": 0}},
        "PRIORITY_WEIGHTS.normal: must lie between 0.000001 and 1,000,000,000 (found 0)",
    ),
    (
        {"PRIORITY_WEIGHTS": {"a b": 1}},
        'PRIORITY_WEIGHTS.a b: must be 1 to 253 characters without blanks (found "a b")',
    ),
    (
        {"RESOURCE_WEIGHTS": {"cpu": 1.0e-9}},
        "RESOURCE_WEIGHTS.cpu: must be 0 or lie between 0.000001 and 1,000,000,000 (found 1e-09)",
    ),
    (
        # It is the weight of the memory itself, too: told once.
        {"RESOURCE_WEIGHTS": {"nvidia.com/gpumem-percentage": "1e10"}},
        (
            "RESOURCE_WEIGHTS.nvidia.com/gpumem-percentage: must be 0 or lie between 0.000001 and 1,000,000,000 "
            '(found "1e10")'
        ),
    ),
    (
        {"aging_alpha": "1e9"},
        (
            "aging_alpha: is 86400000000000.0 a day, which must be a number from 0 to 1,000,000,000,000 "
            '(found "1e9")'
        ),
    ),
    (
        {"aging_alpha": "1e999999"},
        (
            "aging_alpha: is Infinity a day, which must be a number from 0 to 1,000,000,000,000 "
            '(found "1e999999")'
        ),
    ),
    (
        {"max_aging_hours": "1e9"},
        'max_aging_hours: is 41666666.666666664 days, which must be above 0, and at most 1,000,000 (found "1e9")',
    ),
    (
        {"priority_weights": "urgent: 0\nnormal: 2e9"},
        'priority_weights.normal: must lie between 0 and 1,000,000,000 (found "2e9")',
    ),
    ({"normal_weight": "2e9"}, 'normal_weight: must lie between 0 and 1,000,000,000 (found "2e9")'),
]


@pytest.mark.parametrize(("data", "told"), TOO_MUCH)
def test_what_the_document_refuses_is_told_by_the_key_and_value_of_the_file(
    data: dict[str, object], told: str
) -> None:
    with pytest.raises(DocumentError) as refused:
        read_document(data)
    assert [str(problem) for problem in refused.value.problems] == [told]
    with pytest.raises(DocumentError) as refused:
        read_document({"kind": "ConfigMap", "data": data})
    assert [str(problem) for problem in refused.value.problems] == [f"data.{told}"]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("priority_weights", "urgent=0,normal=1000"),
        ("priority_weights", '{"urgent": 0,'),
        ("PRIORITY_WEIGHTS", "1000"),
        ("RESOURCE_WEIGHTS", ""),
    ],
)
def test_weights_that_cannot_be_read_are_told_with_an_example_that_can(key: str, text: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_document({key: text})
    [problem] = refused.value.problems
    assert problem.field == key
    example = problem.reason.removeprefix("must give a number to each name: write JSON, as ").partition(
        ", or `"
    )[0]
    assert read_document({key: example}).class_mode in {"additive", "multiplicative"}


def test_every_problem_of_an_older_format_is_told_at_once() -> None:
    wrong = {
        "AGING_COEFFICIENT": -1,
        "MAX_AGING_TIME": 1.0e12,
        "PRIORITY_WEIGHTS": {"urgent": "?", "normal": 0},
        "RESOURCE_WEIGHTS": {"cpu": 1.0e-9, "memory": True},
        "MAX_AGEING_TIME": 1,
    }
    assert problems_of(wrong) == {
        "AGING_COEFFICIENT",
        "MAX_AGING_TIME",
        "PRIORITY_WEIGHTS.urgent",
        "PRIORITY_WEIGHTS.normal",
        "RESOURCE_WEIGHTS.cpu",
        "RESOURCE_WEIGHTS.memory",
        "MAX_AGEING_TIME",
    }
    assert problems_of(
        {"aging_alpha": "1e9", "max_aging_hours": "x", "priority_weights": {"a": -1, "b": 1e10}}
    ) == {
        "aging_alpha",
        "max_aging_hours",
        "priority_weights.a",
        "priority_weights.b",
    }


def test_an_integer_of_more_digits_than_python_prints_is_refused_by_its_key() -> None:
    assert problems_of({"AGING_COEFFICIENT": 10**5000}) == {"AGING_COEFFICIENT"}


def test_a_weight_of_percentages_is_one_of_the_memory_unless_that_has_its_own() -> None:
    percent, memory = "nvidia.com/gpumem-percentage", "nvidia.com/gpumem"
    assert read_document({"RESOURCE_WEIGHTS": {percent: 0}}).resource_weights == {percent: 0, memory: 0}
    both = {percent: 0, memory: 3}
    assert read_document({"RESOURCE_WEIGHTS": both}).resource_weights == both
