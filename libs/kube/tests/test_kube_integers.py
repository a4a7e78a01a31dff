"""Integers in annotations, as Go's strconv.ParseInt with base 10 and 32 bits reads them."""

import pytest

from fairlead_kube.kinds.quantities import HIGHEST_INT32, LOWEST_INT32, int32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-0", 0),
        ("5", 5),
        ("+5", 5),
        ("-7", -7),
        ("00000000005", 5),
        ("-" + "0" * 5000 + "12", -12),
        ("0" * 5000, 0),
        ("2147483647", HIGHEST_INT32),
        ("-2147483648", LOWEST_INT32),
    ],
)
def test_an_int32_is_read(text: str, expected: int) -> None:
    assert int32(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "+",
        "-+5",
        "+-5",
        "--5",
        " 5",
        "5\n",
        "1_000",
        "0x10",
        "1.0",
        "1e3",
        "٣",
        "2147483648",
        "-2147483649",
        "99999999999",
        "9" * 5000,
        "0" * 5000 + "x",
    ],
)
def test_what_is_no_int32_is_refused_and_raises_nothing(text: str | None) -> None:
    assert int32(text) is None
