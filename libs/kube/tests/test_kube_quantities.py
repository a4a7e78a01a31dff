"""Quantities against exact fractions, and against the vectors of apimachinery's own tests."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_contracts.base.errors import FieldError
from fairlead_kube.kinds.quantities import in_base_units, kueue_count, nanos

SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{suffix + "i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}


def ceiling(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


# quantity_test.go: TestQuantityParse, TestValue, TestMilliValue, TestRoundUp
@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("0", 0, 0),
        ("1n", 1, 1),
        ("1u", 1, 1),
        ("1m", 1, 1),
        ("100m", 1, 100),
        ("1001m", 2, 1001),
        ("1.5", 2, 1500),
        (".5", 1, 500),
        ("5.", 5, 5000),
        ("+10", 10, 10_000),
        ("1.0001", 2, 1001),
        ("1k", 1000, 1_000_000),
        ("1e3", 1000, 1_000_000),
        ("1E3", 1000, 1_000_000),
        ("1e-3", 1, 1),
        ("12.5E-1", 2, 1250),
        ("1Ki", 1024, 1_024_000),
        ("0.3Gi", 322_122_548, 322_122_547_200),
        ("64Gi", 64 * 2**30, 64 * 2**30 * 1000),
        ("1Ei", 2**60, 2**60 * 1000),
        ("1E", 10**18, 10**21),
        ("0.0000000001", 1, 1),
        (5, 5, 5000),
        (0.1, 1, 100),
    ],
)
def test_values_are_rounded_up_as_apimachinery_does(text: str | float, value: int, milli: int) -> None:
    assert kueue_count("memory", nanos(text)) == value
    assert kueue_count("cpu", nanos(text)) == milli


@pytest.mark.parametrize("text", ["-1", "-500m", "-1Ki"])
def test_a_sign_is_kept(text: str) -> None:
    assert nanos(text) == -nanos(text.removeprefix("-"))


@pytest.mark.parametrize(
    "text", ["", "Gi", "1.2.3", "1 Gi", "0x10", "1Kii", "1K", "1e", "nan", "1mi", "--1", "1.1.M"]
)
def test_what_is_no_quantity_is_refused_with_its_field(text: str) -> None:
    with pytest.raises(FieldError) as caught:
        in_base_units("cpu", text, field="spec.nominalQuota")
    assert caught.value.field == "spec.nominalQuota"


@pytest.mark.parametrize("text", ["1e999", "9" * 30, "2Ei"])
def test_what_no_cluster_has_is_refused(text: str) -> None:
    with pytest.raises(FieldError, match="larger than any cluster"):
        in_base_units("memory", text)


def test_base_units_are_those_of_contracts() -> None:
    assert in_base_units("cpu", "1500m") == 1500
    assert in_base_units("memory", "1Ki") == 1024
    assert in_base_units("nvidia.com/gpu", "8") == 8000
    assert in_base_units("nvidia.com/gpu", "500m") == 1000  # Kueue counts whole cards


@settings(max_examples=300, deadline=None)
@given(
    whole=st.integers(0, 10**12),
    fraction=st.text("0123456789", max_size=12),
    suffix=st.sampled_from(sorted(SUFFIXES)),
    sign=st.sampled_from(["", "+", "-"]),
)
def test_any_notation_is_read_exactly(whole: int, fraction: str, suffix: str, sign: str) -> None:
    exact = (whole + Fraction(int(fraction or 0), 10 ** len(fraction))) * SUFFIXES[suffix]
    exact = -exact if sign == "-" else exact
    assert nanos(f"{sign}{whole}.{fraction}{suffix}") == ceiling(exact * 10**9)


@settings(max_examples=100, deadline=None)
@given(mantissa=st.integers(0, 10**9), exponent=st.integers(-12, 12), letter=st.sampled_from("eE"))
def test_any_exponent_is_read_exactly(mantissa: int, exponent: int, letter: str) -> None:
    assert nanos(f"{mantissa}{letter}{exponent}") == ceiling(mantissa * Fraction(10) ** exponent * 10**9)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**15))
def test_counts_of_whole_units_are_exact(amount: int) -> None:
    assert kueue_count("memory", nanos(str(amount))) == amount
    assert kueue_count("cpu", nanos(f"{amount}m")) == amount
