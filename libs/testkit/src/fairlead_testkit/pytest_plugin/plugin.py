"""The pytest plugin: real servers as fixtures, second tries in CI, and hypothesis profiles.

Registered as `fairlead` under pytest11.

Profiles: `fast` by default; `ci` where CI=true is set, the same examples in every run; `deep` by
HYPOTHESIS_PROFILE=deep. A test that states its own `max_examples` keeps it.
"""

import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead_testkit.processes import fork_server
from fairlead_testkit.pytest_plugin import kits, kubelab_fixtures, lanes
from fairlead_testkit.pytest_plugin.kubelab_fixtures import (
    deploy_kit,
    jaeger,
    kube_kit,
    kube_lab,
    kube_labs,
    kueue_lab,
)
from fairlead_testkit.pytest_plugin.slurmlab_fixtures import (
    shared_slurm_lab,
    slurm_lab,
    slurm_labs,
    slurm_programs,
)

if TYPE_CHECKING:
    from fairlead_testkit.nats_servers.container import ContainerNatsServer
    from fairlead_testkit.nats_servers.nats_server import NatsServer

__all__ = [
    "deploy_kit",
    "jaeger",
    "kube_kit",
    "kube_lab",
    "kube_labs",
    "kueue_lab",
    "leaves_nothing_open",
    "nats_server",
    "pytest_collection",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_configure_node",
    "pytest_ignore_collect",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_unconfigure",
    "shared_slurm_lab",
    "slurm_lab",
    "slurm_labs",
    "slurm_programs",
]


_FORKS = "fairlead_forks"
REAL_PROCESSES = ("kube", "slurm", "integration", "container", "chaos")
"""Markers of tests with real processes. All others say the same thing in every run, and get no second try."""
LAB_SECONDS = 180
"""Time limit of a test of a lab that states none: a lab's start counts to the first test that uses it."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep bytecode, share the work among workers, start services as forks, choose the hypothesis profile.

    Deadlines are off: the machine may be busy with other tests.
    """
    _keep_bytecode()
    lanes.configure(config)
    default = "ci" if os.environ.get("CI") == "true" else "fast"
    profile = os.environ.get("HYPOTHESIS_PROFILE", default)
    if config.pluginmanager.hasplugin("hypothesispytest"):
        _load(profile)
    if profile != "deep":
        fork_server.use(getattr(config, "workerinput", {}).get(_FORKS, ()))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: lanes.XdistWorker) -> None:
    """Tell a worker where services are forked."""
    node.workerinput[_FORKS] = fork_server.share()


def _load(profile: str) -> None:
    from hypothesis import settings  # here: a run without hypothesis does not wait for it

    settings.register_profile("fast", max_examples=60, deadline=None)
    settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True, print_blob=True)
    settings.register_profile("deep", max_examples=3000, deadline=None)
    settings.load_profile(profile)


def _keep_bytecode() -> None:
    """Let this process and all that it starts keep what they compile, whatever the environment says.

    Tests start services by the hundred; without bytecode each compiles two thousand modules anew, which is two thirds
    of what its start costs. It is kept in the environment that runs, not beside the sources.
    """
    prefix = sys.pycache_prefix or os.path.join(sys.prefix, "bytecode")  # noqa: PTH118 # as sys has it, a str
    sys.dont_write_bytecode, sys.pycache_prefix = False, prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = prefix


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let nobody look for garbage while tests are collected: each look finds more of what stays, half a second in all."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the files of other workers' lanes to them."""
    return True if lanes.is_anothers(collection_path, config) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives tests of real processes the time, and in CI the second try, that a busy machine asks for.

    On two busy cores a kubelet, an API server or Kueue now and then takes longer than anything waits for. One such miss in
    three thousand tests shall not cost a whole run, and shall not pass unseen: the summary shows the first attempt with its
    traceback, and after the run's allowance (`--max-suite-reruns` in pyproject.toml) a failure is a failure. Whoever
    works on a test never sees this: without CI=true the first failure counts.
    """
    for item in items:
        marked = {marker for marker in REAL_PROCESSES if item.get_closest_marker(marker)}
        if marked & {"kube", "slurm"} and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LAB_SECONDS))
        if marked and os.environ.get("CI") == "true":
            item.add_marker(pytest.mark.flaky(reruns=1))
        if marked and isinstance(item, pytest.Function):
            item.fixturenames.insert(0, "leaves_nothing_open")  # set up first, it looks last


def pytest_collection_finish() -> None:
    """Keep what was collected from being looked at as garbage.

    Five thousand tests and the modules that hold them stay to the end, and a collection of all of it takes 0.2 s.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Build what a test wants before its time begins to count."""
    kits.build_wanted(item)
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Wake the lab for a test that uses it, and let it rest while others run."""
    kubelab_fixtures.wake_or_rest(item)


def pytest_unconfigure() -> None:
    """End the fork servers: a process that leaves them behind is warned of its children."""
    fork_server.end()


@pytest.fixture
def leaves_nothing_open() -> Iterator[None]:
    """Have a test of real processes fail that leaves a connection or a file open; the garbage of a later one would tell of it.

    What is garbage by then warns, and warnings are errors. A look takes a millisecond or two, as long as all that stood at the
    last one is left out: with the reports of two thousand tests it takes 0.05 s, and 0.3 s after a test that thaws what was
    collected, as those of the garbage collector do.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def nats_server(tmp_path: Path) -> "Iterator[NatsServer | ContainerNatsServer]":
    """A running nats-server with JetStream of this test alone; killed by its pid at the end."""
    if os.environ.get("FAIRLEAD_TEST_NATS") == "container":
        from fairlead_testkit.nats_servers.container import ContainerNatsServer

        container = ContainerNatsServer().start()
        try:
            yield container
        finally:
            container.remove()
        return
    from fairlead_testkit.nats_servers.nats_server import NatsServer

    with NatsServer(tmp_path / "nats") as server:
        yield server
