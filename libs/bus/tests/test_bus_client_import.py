"""nats-py is imported without its JetStream client, and whoever asks for that has it."""

import pytest
from nats.js.api import Header

from fairlead_bus.connection import client_import
from fairlead_testkit.processes.fresh_interpreter import printed_by


def test_the_bus_does_without_the_jetstream_client() -> None:
    assert (
        printed_by("import sys, fairlead_bus; print('nats.js' in sys.modules, 'nats.js.api' in sys.modules)")
        == "False False"
    )


@pytest.mark.parametrize(
    "script",
    [
        "import fairlead_bus, nats; print(nats.js.JetStreamContext.__module__)",
        "import fairlead_bus; from nats.js import JetStreamContext; print(JetStreamContext.__module__)",
        "import fairlead_bus, nats.js; print(nats.js.api.PubAck and nats.js.JetStreamContext.__module__)",
        "import nats, fairlead_bus; print(nats.js.JetStreamContext.__module__)",
        "import fairlead_bus, nats; print(type(nats.NATS().jetstream()).__module__)",
    ],
)
def test_whoever_asks_for_it_has_it(script: str) -> None:
    assert printed_by(script) == "nats.js.client"


def test_a_name_that_it_does_not_have_is_an_attribute_error() -> None:
    assert printed_by("import fairlead_bus, nats; print(hasattr(nats.js, 'Nonsense'))") == "False"


def test_the_headers_that_stand_in_are_those_of_nats_py() -> None:
    ours = client_import._Header
    assert {one.name: one.value for one in ours}.items() <= {one.name: one.value for one in Header}.items()
