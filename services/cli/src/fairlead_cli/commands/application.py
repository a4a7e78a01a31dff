"""The command line, put together."""

from collections.abc import Callable

from cyclopts import App, Group

from fairlead_cli.commands import (
    asking,
    checking,
    guarding,
    nats,
    ordering,
    policies,
    running,
    slurm,
    steering,
    submitting,
)
from fairlead_cli.options import CHECK, RUN, STEER, TRY, USE

HELP = """Fair order for the waiting jobs of shared clusters.

Start here: `fairlead demo` shows it at work, `fairlead up` runs it on this machine.

Exit codes: 0 all went well; 1 refused or failed; 2 wrong usage or input; 3 nobody is there to answer; 4 a process of our own
could not be run (its port is taken, say); 130 ended by Ctrl-C.
"""


def _version() -> str:
    from importlib.metadata import version

    return version("fairlead-cli")


app = App(
    name="fairlead", help=HELP, help_format="plaintext", version=_version, usage="Usage: fairlead COMMAND"
)

_GROUPS: dict[Group, tuple[Callable[..., object], ...]] = {
    RUN: (running.demo, running.up, running.feed, guarding.watchdog),
    USE: (submitting.submit, asking.queue, asking.tenants, asking.explain, asking.top),
    TRY: (ordering.order, ordering.snapshot),
    CHECK: (checking.doctor,),
    STEER: (steering.approve, steering.pause, steering.resume, steering.release),
}
for group, functions in _GROUPS.items():
    for function in functions:
        app.command(function, group=group)
app.command(policies.policy)
app.command(nats.nats)
app.command(slurm.slurm)
