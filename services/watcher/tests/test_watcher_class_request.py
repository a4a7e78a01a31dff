"""Requests of a job by annotations, place by place, and what it hears of what cannot be read."""

import pytest

from fairlead_kube.kinds.objects import ObjectMeta
from fairlead_watcher.objects.class_request import OVERRIDE, AnnotationSource, ClassRequest, class_request_in
from fairlead_watcher.objects.metadata import MOST_BYTES, merged, words_of


def asked(*places: dict[str, str]) -> ClassRequest:
    return class_request_in(
        [
            AnnotationSource(
                f"place{number}", {f"wdrf.x-k8s.io/{key}": value for key, value in found.items()}
            )
            for number, found in enumerate(places)
        ]
    )


def test_without_wishes_there_are_none() -> None:
    assert (
        class_request_in([AnnotationSource("a", {"team": "x"}), AnnotationSource("b", {})]) == ClassRequest()
    )


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([{"urgent": "true"}], "urgent"),
        ([{"approved": "true"}], "approved"),
        ([{"batch": "true"}], "batch"),
        ([{"urgent": "false"}], None),
        ([{"approved": "true", "urgent": "true", "a": "true"}], "urgent"),
        ([{"b": "true", "a": "true"}], "a"),
        ([{}, {}, {"urgent": "true"}], "urgent"),
        ([{"approved": "true"}, {"urgent": "true"}], "approved"),
        ([{"urgent": "false"}, {"urgent": "true"}], None),
        ([{"urgent": "false"}, {"urgent": "true", "approved": "true"}], "approved"),
        ([{"urgent": "yes"}, {"urgent": "true"}], "urgent"),
    ],
)
def test_the_class_that_is_asked_for(places: list[dict[str, str]], expected: str | None) -> None:
    assert asked(*places).requested_class == expected


@pytest.mark.parametrize("value", ["True", "yes", "1", "", " true"])
def test_a_wish_that_cannot_be_read_is_told_and_counts_as_absent(value: str) -> None:
    found = asked({"urgent": value})
    assert found.requested_class is None
    [fault] = found.faults
    assert fault.field == "place0[wdrf.x-k8s.io/urgent]"
    assert fault.value == value
    assert '"true" or "false"' in fault.remedy


@pytest.mark.parametrize(
    ("value", "expected"), [("5", 5), ("-7", -7), ("+3", 3), ("00000000005", 5), ("2147483647", 2**31 - 1)]
)
def test_an_override_is_an_integer(value: str, expected: int) -> None:
    assert asked({"priority-override": value}, {"priority-override": "1"}) == ClassRequest(
        priority_override=expected
    )


@pytest.mark.parametrize("value", ["", "1.5", "1e3", "2147483648", "9" * 4000, "٣", "high"])
def test_an_override_that_is_none_is_told(value: str) -> None:
    found = asked({"priority-override": value}, {"priority-override": "4"})
    assert found.priority_override == 4
    assert [fault.field for fault in found.faults] == ["place0[wdrf.x-k8s.io/priority-override]"]


def test_words_that_are_data_or_the_systems_own_are_not_kept() -> None:
    words = words_of(
        ObjectMeta(
            labels={"kueue.x-k8s.io/queue-name": "q"},
            annotations={
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "kueue.x-k8s.io/priority-boost": "1",
                "long": "x" * 257,
                "wdrf.x-k8s.io/urgent": "x" * 10_000,
                "team": "x" * 256,
            },
        )
    )
    assert words.labels == {"kueue.x-k8s.io/queue-name": "q"}
    assert words.annotations == {"wdrf.x-k8s.io/urgent": "x" * 255 + "…", "team": "x" * 256}
    assert words.left_out == 0


def test_the_beginning_of_a_wish_is_not_taken_for_the_whole() -> None:
    words = words_of(ObjectMeta(annotations={OVERRIDE: "0" * 300 + "5"}))
    found = class_request_in([AnnotationSource("metadata.annotations", words.annotations)])
    assert found.priority_override is None
    assert [fault.value for fault in found.faults] == ["0" * 255 + "…"]


def test_words_are_bounded_and_what_is_left_out_is_counted() -> None:
    many = {f"k{number:04}": "ü" * 200 for number in range(500)} | {"wdrf.x-k8s.io/urgent": "true"}
    words = words_of(ObjectMeta(annotations=many))
    assert (
        sum(len(key.encode()) + len(value.encode()) for key, value in words.annotations.items()) <= MOST_BYTES
    )
    assert words.annotations["wdrf.x-k8s.io/urgent"] == "true"
    assert words.left_out == len(many) - len(words.annotations) > 0


def test_the_first_place_wins() -> None:
    first, second = words_of(ObjectMeta(labels={"a": "1"})), words_of(ObjectMeta(labels={"a": "2", "b": "3"}))
    assert merged([first, second]).labels == {"a": "1", "b": "3"}


@pytest.mark.parametrize("name", ["aging", "aging-coefficient", "max-aging-time", "weight"])
@pytest.mark.parametrize("value", ["-1", "true", "0.1"])
def test_what_is_the_policys_to_set_is_told_as_that_and_asks_for_no_class(name: str, value: str) -> None:
    found = asked({name: value, "urgent": "true"})
    [fault] = found.faults
    assert fault.field.endswith(f"[wdrf.x-k8s.io/{name}]")
    assert "the policy sets them for everybody" in fault.remedy
    assert "true" not in fault.remedy
    assert found.requested_class == "urgent"
