"""The demo: a three times overloaded cluster on this machine, watched, measured and reported."""

from fairlead_cli.demo.feeding import feed
from fairlead_cli.demo.flags import DemoFlags
from fairlead_cli.demo.running import run_demo

__all__ = ["DemoFlags", "feed", "run_demo"]
