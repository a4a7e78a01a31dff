"""Arguments of runs of pytest that a test of the plugin starts."""

UNUSED = ("-p", "no:hypothesispytest", "-p", "no:asyncio", "-p", "no:pytest_cov")
"""Plugins that such a run has no use for: each of two dozen processes would load them."""
OPTIONS = ("--strict-markers", "--max-suite-reruns=2", "--rerun-show-tracebacks")
"""Options of pyproject.toml that the plugin counts on."""
