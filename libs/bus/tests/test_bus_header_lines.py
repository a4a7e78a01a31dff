"""Headers read by us: the same as nats-py reads, whatever they hold."""

from hypothesis import given, settings
from hypothesis import strategies as st
from nats.aio.client import Client

from fairlead_bus.connection.client import UnbufferedClient
from fairlead_testkit.inputs.cases import cases

PARTS = st.lists(
    st.sampled_from([b"Nats", b"a", b":", b" ", b"\t", b"\x0b", b"\x1c", b"\n", b"\r", "ü".encode(), b"\xff"])
    | st.binary(max_size=2),
    max_size=4,
).map(b"".join)
LINES = st.builds(
    lambda name, colon, value: name + colon + value, PARTS, st.sampled_from([b":", b": ", b""]), PARTS
)
BLOCKS = st.lists(LINES, max_size=4).map(b"\r\n".join)


@settings(max_examples=cases())
@given(BLOCKS)
def test_headers_are_read_as_the_client_library_reads_them(block: bytes) -> None:
    assert UnbufferedClient._parse_header_lines(block) == Client._parse_header_lines(block)
