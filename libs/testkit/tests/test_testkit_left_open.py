"""A test of real processes that leaves a connection open fails itself, and no test after it does."""

import pytest

from fairlead_testkit.pytest_plugin.inner_runs import OPTIONS

pytest_plugins = ["pytester"]

INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
markers =
    integration
"""
LEAVES_OPEN = """
import asyncio
import gc
import socket

import pytest

pytestmark = pytest.mark.integration
gc.disable()  # or the garbage might be looked at in time by luck

class Keeping(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport  # who keeps it, too: garbage that has to be looked for

def test_before():
    pass

@pytest.fixture(scope="module")
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening

async def test_that_leaves_a_connection_open(server):
    await asyncio.get_running_loop().create_connection(Keeping, *server.getsockname())

def test_after():
    pass
"""


def test_who_leaves_a_connection_open_is_told(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)  # where it would be tried once more
    pytester.makeini(INI)
    pytester.makepyfile(LEAVES_OPEN)
    result = pytester.runpytest_subprocess(*OPTIONS)
    assert result.parseoutcomes() == {"passed": 3, "errors": 1}
    result.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_that_leaves_a_connection_open*", "*unclosed transport*"]
    )
