"""`fairlead up`: a whole instance until Ctrl-C."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fairlead_cli.connection import connection_settings
from fairlead_cli.console import say, warn
from fairlead_cli.instance import RunningInstance, forget, remember, state_directory
from fairlead_cli.policy_files import read_policy, shipped_policy
from fairlead_cli.readiness import wait_answering
from fairlead_cli.stack import Stack, StackPlan, child_environment, running

LAPTOP = "laptop"
ADDRESS = "FAIRLEAD_NATS_URL"


class UpFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `fairlead up`."""

    nats: str | None = None
    policy: Path | None = None
    scorers: int = 2
    cluster: str = "sim"
    cluster_file: Path | None = None
    store: Path | None = None
    port: int | None = None


async def stay_up(flags: UpFlags) -> int:
    """Run until a signal asks for the end; returns the exit code."""
    state = state_directory(os.environ)
    plan = StackPlan(
        store=(flags.store or state / "store").absolute(),
        policy=shipped_policy(LAPTOP) if flags.policy is None else read_policy(flags.policy),
        keep_policy=flags.policy is None,
        scorers=flags.scorers,
        cluster=flags.cluster,
        cluster_file=flags.cluster_file,
        nats=flags.nats,
        port=flags.port,
        environ=child_environment(os.environ),
    )
    say("starting …")
    with ending_on_signals() as end:
        async with running(plan, say=say) as stack:
            with _remembered(state, RunningInstance(url=stack.url, pid=os.getpid(), store=str(plan.store))):
                await _introduce(stack, plan, end)
                await end.wait()
            say("ending …")
    say("ended; jobs, queue and policy are kept for the next `fairlead up`")
    return 0


async def _introduce(stack: Stack, plan: StackPlan, end: asyncio.Event) -> None:
    """Say what runs once it answers, and what to type next."""
    for note in stack.notes:
        say(note)
    ready = await wait_answering(stack.bus, end)
    if end.is_set():
        return
    if not ready:
        warn(f"the scorers do not answer for a pool yet; their logs: {plan.store / 'logs'}")
    cluster = f", cluster {plan.cluster}" if plan.cluster else ""
    say(f"running: {plan.scorers} scorers, an admitter{cluster}; logs in {plan.store / 'logs'}")
    say(f"NATS: {connection_settings(stack.url, {}).redacted()['url']}")
    if os.environ.get(ADDRESS, stack.url) != stack.url:
        warn(f"{ADDRESS} is set to another address, and other commands go there: unset it to reach this one")
    say("")
    say("In another terminal:")
    say("  fairlead submit --tenant team-a --gpus 8 --cpu 32 --memory 128Gi --run-seconds 60")
    say("  fairlead queue | tenants | top | explain JOB")
    say("Ctrl-C ends it.")


@contextlib.contextmanager
def _remembered(directory: Path, instance: RunningInstance) -> Iterator[None]:
    """Leave word of the instance for other terminals, and take it away again."""
    try:
        remember(directory, instance)
    except OSError as error:
        warn(f"other terminals must be told the address with --nats: {directory} cannot be written: {error}")
    try:
        yield
    finally:
        forget(directory, instance.pid)


@contextlib.contextmanager
def ending_on_signals() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C, SIGTERM and a closed terminal set."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, end.set)
    try:
        yield end
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
