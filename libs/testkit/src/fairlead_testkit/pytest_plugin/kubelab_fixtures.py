"""The lab as pytest fixtures; part of the plugin.

Where the lab cannot be built, tests with the marker `kube` are skipped with a line that says what to do; where CI=true is
set they fail.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from fairlead_testkit.processes.apt import go_without
from fairlead_testkit.pytest_plugin.kits import FAILED

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead_testkit.kubelab import Kit, KubeLab, LabOptions
    from fairlead_testkit.kubelab.toolsets import Toolset
    from fairlead_testkit.telemetry.jaeger import Jaeger

type LabFactory = "Callable[[LabOptions], KubeLab]"
"""Starts a lab of its own for one test; all of them end with the test."""

REST_AFTER_SECONDS = 10.0
"""Seconds without a test that uses the session's lab, after which it rests: meanwhile Kubernetes deletes the pods of
the last one."""


@dataclass
class _Shared:
    """The session's lab, and whether it rests."""

    lab: "KubeLab"
    unused_since: float | None = None
    """Monotonic second since which no test uses the lab; None while one does."""
    rests: bool = False


_SHARED: pytest.StashKey[_Shared] = pytest.StashKey()


def wake_or_rest(item: pytest.Item) -> None:
    """Wake the session's lab for a test that uses it, and let it rest while others run: at rest it would take 3 % of a core."""
    shared = item.config.stash.get(_SHARED, None)
    if shared is None:
        return
    if "kube_lab" in getattr(item, "fixturenames", ()):
        shared.unused_since = None
        if shared.rests:
            shared.lab.wake()
            shared.rests = False
    elif shared.unused_since is None:
        shared.unused_since = time.monotonic()
    elif not shared.rests and time.monotonic() - shared.unused_since > REST_AFTER_SECONDS:
        shared.lab.rest()
        shared.rests = True


@pytest.fixture(scope="session")
def kube_kit(pytestconfig: pytest.Config) -> "Kit":
    """The lab's binaries."""
    from fairlead_testkit.kubelab.toolsets import CURRENT

    return _kit(pytestconfig, CURRENT)


@pytest.fixture
def jaeger(pytestconfig: pytest.Config, tmp_path: "Path") -> "Iterator[Jaeger]":
    """A running Jaeger of this test alone."""
    from fairlead_testkit.kubelab.toolsets import JAEGER
    from fairlead_testkit.telemetry.jaeger import Jaeger

    with Jaeger(tmp_path, _kit(pytestconfig, JAEGER)) as found:
        yield found


@pytest.fixture(scope="session")
def deploy_kit(pytestconfig: pytest.Config) -> "Kit":
    """The loader of docker-compose, and the kinds that manifests use beside Kubernetes' own."""
    from fairlead_testkit.kubelab.toolsets import DEPLOY

    return _kit(pytestconfig, DEPLOY)


def _kit(config: pytest.Config, toolset: "Toolset") -> "Kit":
    """The kit. Skips where Go is missing; anything else is a failure, and so is that in CI."""
    from fairlead_testkit.kubelab import GoMissingError, build

    failed = config.stash.get(FAILED, {})
    try:
        if toolset.folder in failed:
            raise failed[toolset.folder]
        return build(toolset)
    except GoMissingError as error:
        go_without(str(error))


@pytest.fixture(scope="session")
def kube_lab(kube_kit: "Kit", pytestconfig: pytest.Config) -> "Iterator[KubeLab]":
    """The whole stack, one for all tests of a session: each test makes namespaces and queues of its own.

    Who stops, restarts or configures Kueue takes `kueue_lab`; who does that to another part takes `kube_labs`, unless it
    sees all parts at work again.
    """
    from fairlead_testkit.kubelab import KubeLab

    with KubeLab(kit=kube_kit) as lab:
        pytestconfig.stash[_SHARED] = _Shared(lab)
        yield lab
        del pytestconfig.stash[_SHARED]


@pytest.fixture
def kueue_lab(kube_lab: "KubeLab") -> "Iterator[KubeLab]":
    """The lab of the session, whose Kueue this test may stop, restart and configure: afterwards it is as it was.

    A restart costs a tenth of what a lab of its own does.
    """
    before = kube_lab.pids().get("kueue")
    try:
        yield kube_lab
    finally:
        if kube_lab.pids().get("kueue") != before:
            kube_lab.restart_kueue(gates=kube_lab.options.gates)


@pytest.fixture
def kube_labs(kube_kit: "Kit") -> "Iterator[LabFactory]":
    """Starts labs of this test alone, with options: `kube_labs(LabOptions(gates={}))`."""
    from fairlead_testkit.kubelab import KubeLab

    with contextlib.ExitStack() as stack:
        yield lambda options: stack.enter_context(KubeLab(options, kit=kube_kit))
