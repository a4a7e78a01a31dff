"""Quantities against a reference in exact decimals, and there and back again."""

from decimal import ROUND_CEILING, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import MAX_QUANTITY, base_units, format_quantity, parse_quantity

RESOURCES = st.sampled_from(["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "x"])
FACTORS: dict[str, str | int] = {
    "n": "1e-9", "u": "1e-6", "m": "1e-3", "": "1", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12",
    "P": "1e15", "E": "1e18", "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "value", "amount"),
    [
        ("cpu", "500m", 500),
        ("cpu", 2, 2000),
        ("cpu", "0.1", 100),
        ("cpu", 0.1, 100),
        ("cpu", ".5", 500),
        ("cpu", "5.", 5000),
        ("cpu", "1e3", 1_000_000),
        ("cpu", "100u", 1),
        ("cpu", "+1", 1000),
        ("cpu", "1P", 10**18),
        ("memory", "64Gi", 64 * 2**30),
        ("memory", "1.5Ki", 1536),
        ("memory", "1500m", 2),
        ("memory", 0.1, 1),
        ("memory", "1Ei", 2**60),
        ("hugepages-2Mi", "4Mi", 4 * 2**20),
        ("nvidia.com/gpu", 8, 8000),
        ("nvidia.com/gpu", "0", 0),
        ("nvidia.com/gpu", -0.0, 0),
        # More than 28 digits: an arithmetic of 28 would round the last one away, and up with it.
        ("memory", "1.0000000000000000000000000001", 2),
    ],
)
def test_notation(resource: str, value: object, amount: int) -> None:
    assert parse_quantity(resource, value) == amount


@pytest.mark.parametrize(
    "value",
    [
        None, True, [], {}, b"1", "", " ", "-1", -1, -0.5, "-1m", "1 Gi", "Gi", "1gi", "1KI", "1mm", "e3", "1e", "1e+",
        "0x10", "1_000", "1,5", "NaN", "Infinity", float("nan"), float("inf"), float("-inf"), "\uff11", "\u0663",
        "1e999999999", "9" * 40, 10**5000, -(10**5000), 1e300, "2Ei", 2**60 + 1,
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) else f"{type(value).__name__} of {value.bit_length()} bits",
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_field_and_reason(value: object) -> None:
    with pytest.raises(FieldError) as refused:
        parse_quantity("memory", value, field="demand.memory")
    assert refused.value.field == "demand.memory"
    assert "quantity" in refused.value.reason
    assert len(str(refused.value)) < 300


@given(
    RESOURCES,
    st.decimals(min_value=0, max_value=10**12, places=12),
    st.sampled_from(sorted(FACTORS)),
)
def test_notation_equals_the_reference(resource: str, number: Decimal, suffix: str) -> None:
    with localcontext(prec=100):
        exact = number * Decimal(FACTORS[suffix]) * base_units(resource)
        expected = int(exact.to_integral_value(rounding=ROUND_CEILING))
    text = f"{number:f}{suffix}"
    if exact > MAX_QUANTITY:
        with pytest.raises(FieldError, match="larger than any cluster"):
            parse_quantity(resource, text)
    else:
        assert parse_quantity(resource, text) == expected


@given(RESOURCES, st.floats(min_value=0, max_value=1e9))
def test_a_number_means_its_shortest_decimal(resource: str, number: float) -> None:
    with localcontext(prec=400):
        exact = Decimal(repr(number)) * base_units(resource)
        assert parse_quantity(resource, number) == int(exact.to_integral_value(rounding=ROUND_CEILING))


@given(RESOURCES, st.integers(0, MAX_QUANTITY))
def test_there_and_back_again(resource: str, amount: int) -> None:
    assert parse_quantity(resource, format_quantity(resource, amount)) == amount


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [("cpu", 1500, "1500m"), ("cpu", 2000, "2"), ("memory", 64 * 2**30, "64Gi"), ("memory", 1000, "1000"), ("memory", 0, "0")],
)  # fmt: skip
def test_amounts_as_people_read_them(resource: str, amount: int, text: str) -> None:
    assert format_quantity(resource, amount) == text
