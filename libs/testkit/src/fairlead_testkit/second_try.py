"""Second tries: in CI a test of real processes that fails is tried once more; part of the plugin.

On two busy cores a kubelet, an API server or Kueue now and then takes longer than anything waits for. One such miss in
three thousand tests shall not cost a whole run, and shall not pass unseen: the summary shows the first attempt with its
traceback, and after the run's allowance (`--max-suite-reruns` in pyproject.toml) a failure is a failure. Whoever
works on a test never sees this: without CI=true the first failure counts.
"""

import os

import pytest

MARKERS = ("kube", "slurm", "integration", "container", "chaos")
"""Of tests with real processes. All others say the same thing in every run, and get no second try."""


def grant(items: list[pytest.Item]) -> None:
    """Mark the tests that are tried once more, where this is CI."""
    if os.environ.get("CI") != "true":
        return
    for item in items:
        if any(item.get_closest_marker(marker) for marker in MARKERS):
            item.add_marker(pytest.mark.flaky(reruns=1))
