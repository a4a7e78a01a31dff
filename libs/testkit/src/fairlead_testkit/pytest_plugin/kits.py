"""Kits of programs that tests want, built once and outside of every test's time limit; part of the plugin.

Where several workers run (pytest-xdist) the controlling process builds what is missing. Before the lab is there no test
runs: its tests, which wait more than they compute, take as long as all others beside them, and would begin minutes later.
"""

import contextlib
import os
import re
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairlead_testkit.kubelab import KubeLabError
    from fairlead_testkit.kubelab.toolsets import Toolset

MARKER = "kube"
FAILED: pytest.StashKey["dict[str, KubeLabError]"] = pytest.StashKey()
"""Failures of building, by folder of the tool set: said by each test that wants it; the others can run."""
NICENESS = 5
"""Niceness of builds beside tests."""
_WANTS = re.compile(r"\b(?:pytest\.mark\.(kube)|(deploy_kit)|(jaeger))\b")

type KitName = str
"""The marker or fixture by which a test wants a kit."""


def named_in(source: str) -> frozenset[KitName]:
    """The kits that a test file names, and so may want."""
    return frozenset(found.group(found.lastindex or 0) for found in _WANTS.finditer(source))


def _toolset(name: KitName) -> "Toolset":
    from fairlead_testkit.kubelab import toolsets  # with all that a lab needs

    return {MARKER: toolsets.CURRENT, "deploy_kit": toolsets.DEPLOY, "jaeger": toolsets.JAEGER}[name]


def build_wanted(item: pytest.Item) -> None:
    """Build what a test wants, where it is missing."""
    names = {"deploy_kit", "jaeger"} & set(getattr(item, "fixturenames", ()))
    if item.get_closest_marker(MARKER):
        names.add(MARKER)
    version = getattr(getattr(item, "callspec", None), "params", {}).get("kueue")
    if not names and version is None:
        return
    from fairlead_testkit.kubelab import KubeLabError, build
    from fairlead_testkit.kubelab.toolsets import OLDER

    failed = item.config.stash.setdefault(FAILED, {})
    wanted = [_toolset(name) for name in sorted(names)]
    wanted += [OLDER[version]] if version in OLDER else []
    for toolset in wanted:
        if toolset.folder not in failed:
            try:
                build(toolset)
            except KubeLabError as error:
                failed[toolset.folder] = error


class KitBuilding:
    """Builds the lab before all tests, and other kits beside the tests that want none of them."""

    def __init__(self) -> None:
        self._missing: frozenset[KitName] = frozenset()

    def begin(self, names: Iterable[KitName]) -> None:
        """Build the lab if it is named and missing, and begin with the others."""
        named = set(names)
        if MARKER in named:
            _try_to_build(MARKER)
        others = [name for name in ("deploy_kit", "jaeger") if name in named]
        self._missing = frozenset(others)
        threading.Thread(target=self._build, args=(others,), daemon=True).start()

    def lacks(self, names: frozenset[KitName]) -> bool:
        """Whether any of these is yet to be built."""
        return not self._missing.isdisjoint(names)

    def _build(self, names: Iterable[KitName]) -> None:
        os.nice(NICENESS)  # of this thread alone, on Linux, and of what it starts
        for name in names:
            _try_to_build(name)
            self._missing -= {name}


def _try_to_build(name: KitName) -> None:
    """Build a kit where it is missing; each test that wants it tries once more where that failed, and says why."""
    from fairlead_testkit.kubelab import KubeLabError, build

    with contextlib.suppress(KubeLabError, OSError):
        build(_toolset(name))
