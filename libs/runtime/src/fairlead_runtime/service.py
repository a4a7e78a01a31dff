"""The entry point of every service: `python -m fairlead_<service>`.

Exit codes: 0 after a clean end, 1 after a failure, 2 for wrong settings, 128 + the signal's number where a second
signal or the shutdown deadline cut the end short.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import NoReturn

import structlog

from fairlead_runtime.errors import ServiceError, SettingsError
from fairlead_runtime.garbage import collect_fully, put_off_full_collections
from fairlead_runtime.health import HealthServer, ask_health
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_runtime.logs import configure_logging
from fairlead_runtime.settings import PREFIX, ServiceSettings, new_replica, redacted
from fairlead_runtime.sources import add_arguments, given_arguments, load_settings
from fairlead_runtime.tracing import Tracing, configure_tracing

EXIT_CLEAN, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
_SIGNALLED = 128
_FLUSH_SECONDS = 2.0

type Main[S: ServiceSettings] = Callable[[S, Lifecycle], Awaitable[None]]


def run_service[S: ServiceSettings](
    kind: type[S],
    main: Main[S],
    *,
    service: str | None = None,
    description: str = "",
    foreseen: tuple[type[Exception], ...] = (),
) -> NoReturn:
    """Run a service from the command line to its exit code.

    Args:
        main: the composition root: connects, wires, supervises; returns or raises when the service ends.
        service: its name, as in logs, metrics and traces; by default after the package of `kind`: `scorer` for
            `fairlead_scorer.settings`.
        description: a sentence for `--help`.
        foreseen: errors, beside our own, whose words tell an operator what to do: they are logged without a traceback.
    """
    service = service or kind.__module__.partition(".")[0].removeprefix("fairlead_")
    parsed = _parser(kind, service, description).parse_args()
    file = parsed.config or os.environ.get(PREFIX + "CONFIG")
    try:
        settings = load_settings(kind, environ=os.environ, file=file, arguments=given_arguments(parsed, kind))
    except SettingsError as error:
        sys.stderr.write("".join(f"fairlead-{service}: {problem}\n" for problem in error.problems))
        sys.exit(EXIT_USAGE)
    if parsed.health_check:
        sys.exit(_check_health(settings))
    replica = new_replica(settings)
    configure_logging(settings.log_level, service, replica)
    lifecycle = Lifecycle(service, replica)
    tracing = configure_tracing(settings, service, replica, lifecycle.spans)
    living = _live(settings, main, lifecycle, tracing, (ServiceError, *foreseen))
    put_off_full_collections()
    sys.exit(asyncio.run(living))


def _parser(kind: type[ServiceSettings], service: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"fairlead-{service}",
        description=description,
        epilog="Flags win over the environment, the environment over the file, the file over the defaults. "
        "Secrets are taken from the environment or the file alone.",
    )
    parser.add_argument(
        "--config", metavar="FILE", help=f"YAML file with the settings below as keys [{PREFIX}CONFIG]"
    )
    parser.add_argument(
        "--health-check",
        action="store_true",
        help="ask the service that runs on the health port whether it is ready; exit 0 or 1",
    )
    add_arguments(parser, kind)
    return parser


def _check_health(settings: ServiceSettings) -> int:
    report = ask_health(settings.health_host, settings.health_port)
    reasons = "".join(f"{name}: {reason}\n" for name, reason in report.reasons.items())
    sys.stdout.write(reasons or "ready\n")
    return EXIT_CLEAN if report.ready else EXIT_FAILED


async def _live[S: ServiceSettings](
    settings: S,
    main: Main[S],
    lifecycle: Lifecycle,
    tracing: Tracing,
    foreseen: tuple[type[Exception], ...],
) -> int:
    """Runs the service from the first log line to the exit code."""
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    log.info("starting", settings=redacted(settings), tracing=tracing.on)
    try:
        health = HealthServer(
            lifecycle.metrics, lifecycle.readiness, host=settings.health_host, port=settings.health_port
        )
        async with health:
            log.info("health listening", host=settings.health_host, port=health.port)
            await _run_until_stopped(settings, main, lifecycle)
    except Exception as error:  # noqa: BLE001 # the last place: every error is logged and becomes the exit code
        _log_failure(error, foreseen)
        code = EXIT_FAILED
    else:
        code = EXIT_CLEAN
    if not await tracing.flush(_FLUSH_SECONDS):
        log.warning("spans were lost", why="the collector did not take them in time")
    log.info("stopped", code=code)
    return code


async def _run_until_stopped[S: ServiceSettings](settings: S, main: Main[S], lifecycle: Lifecycle) -> None:
    async def run() -> None:
        await main(settings, lifecycle)

    with _handling_signals(lifecycle):
        async with asyncio.TaskGroup() as group:
            running = group.create_task(run(), name="main")
            ending = group.create_task(_end(running, lifecycle, settings.shutdown_seconds), name="end")
            collecting = group.create_task(collect_fully(), name="garbage")
            await asyncio.wait([running])
            collecting.cancel()
            ending.cancel()


async def _end(main: asyncio.Task[None], lifecycle: Lifecycle, within: float) -> None:
    """Sees to it that `main` comes to its end after the stop, if need be by ending the process."""
    await lifecycle.stop.wait()
    if not lifecycle.awaited:
        main.cancel()  # still on its way up: nobody in it waits for the stop
    done, _ = await asyncio.wait([main], timeout=within)
    if not done:
        _end_now(signal.SIGTERM, f"the clean end took longer than {within} s")


def _end_now(number: signal.Signals, why: str) -> NoReturn:
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    log.error("killed", why=why, tasks=sorted(task.get_name() for task in asyncio.all_tasks()))
    os._exit(_SIGNALLED + number)


@contextlib.contextmanager
def _handling_signals(lifecycle: Lifecycle) -> Iterator[None]:
    """SIGTERM and SIGINT ask for a clean end; the second of them ends the process at once."""

    def ask(number: signal.Signals) -> None:
        if lifecycle.stop.is_set():
            _end_now(number, f"{number.name} while stopping")
        lifecycle.ask_stop(number.name)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _log_failure(error: BaseException, foreseen: tuple[type[Exception], ...]) -> None:
    """Logs each error of a group by itself; with a traceback only where we did not foresee the error."""
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    said = set[str]()
    for leaf in _leaves(error):
        words = str(leaf) or repr(leaf)
        expected = isinstance(leaf, foreseen)
        if expected and words in said:
            continue  # several tasks met the same
        said.add(words)
        log.error("failed", error=words, kind=type(leaf).__name__, exc_info=None if expected else leaf)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
