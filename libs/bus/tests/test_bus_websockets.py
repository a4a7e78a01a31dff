"""NATS over WebSockets: their library is read where an address asks for it, and nowhere else."""

import pytest

from fairlead_testkit.processes.fresh_interpreter import printed_by


def test_the_bus_does_without_the_library_of_websockets() -> None:
    assert printed_by("import sys, fairlead_bus; print('aiohttp' in sys.modules)") == "False"


@pytest.mark.parametrize("address", ["ws://a", "wss://a"])
def test_an_address_of_a_websocket_brings_it(address: str) -> None:
    script = (
        "from fairlead_bus.connection.client_import import enable_websockets; from nats.aio import transport;"
        "enable_websockets(['nats://a', 'tls://a']); print(transport.aiohttp is None);"
        f"enable_websockets(['nats://a', {address!r}]); print(transport.aiohttp is None)"
    )
    assert printed_by(script).split() == ["True", "False"]


def test_whoever_imported_it_before_keeps_it() -> None:
    script = (
        "import aiohttp, fairlead_bus; from nats.aio import transport; print(transport.aiohttp is aiohttp)"
    )
    assert printed_by(script) == "True"


def test_whoever_imports_it_later_has_it_whole() -> None:
    assert (
        printed_by("import fairlead_bus, aiohttp; from aiohttp import web; print(aiohttp.web is web)")
        == "True"
    )
