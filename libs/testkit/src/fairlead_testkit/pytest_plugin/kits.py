"""Kits of programs that tests want, built once and outside of every test's time limit; part of the plugin.

Where several workers run (pytest-xdist) the controlling process builds what is missing, and tests that want none of it
run meanwhile: two cores build Kubernetes in six minutes, and most tests want no Kubernetes.
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
"""Niceness of builds behind the first: most tests of programs that are built want the lab's."""
_WANTS = re.compile(r"\b(?:pytest\.mark\.(kube)|(deploy_kit)|(jaeger))\b")

type KitName = str
"""The marker or fixture by which a test wants a kit."""
LAB: frozenset[KitName] = frozenset({MARKER})


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
    """Builds kits beside the tests that want none of them."""

    def __init__(self) -> None:
        self._missing: frozenset[KitName] = frozenset()

    def begin(self, names: Iterable[KitName]) -> None:
        """Build those that are missing, the lab's first."""
        named = set(names)
        wanted = [name for name in (MARKER, "deploy_kit", "jaeger") if name in named]
        if not wanted:
            return
        from fairlead_testkit.kubelab import Kit

        missing = [name for name in wanted if Kit.found(_toolset(name)) is None]
        self._missing = frozenset(missing)
        threading.Thread(target=self._build, args=(missing,), daemon=True).start()

    def lacks(self, names: frozenset[KitName]) -> bool:
        """Whether any of these is yet to be built."""
        return not self._missing.isdisjoint(names)

    def _build(self, names: Iterable[KitName]) -> None:
        from fairlead_testkit.kubelab import KubeLabError, build

        for name in names:
            # Each test that wants it tries once more, and says why it failed.
            with contextlib.suppress(KubeLabError, OSError):
                build(_toolset(name))
            self._missing -= {name}
            if name == MARKER:
                os.nice(NICENESS)  # of this thread alone, on Linux, and of what it starts
