"""Loaded by each Python process that finds this folder on its path: samples what the main thread spends its CPU on.

At SIGUSR2 it adds a line of JSON to its file: seconds of CPU of the process, of the main thread and of the thread that
sends spans; samples of the main thread; and of these, how many found it telling spans.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

_EVERY_SECONDS = 0.001
"""Seconds of the process's CPU between samples. Kernels that count in ticks sample at each of these, every four
milliseconds for most."""
_TELLING = (
    "/fairlead_runtime/spans.py",
    "/fairlead_runtime/exporting.py",
    "/fairlead_runtime/frontend_spans.py",
    "/fairlead_runtime/tracing.py",
    "/fairlead_contracts/messages/job_traces.py",
    "/fairlead_admitter/report/job_traces.py",
    "/fairlead_scorer/report/pass_traces.py",
    "/opentelemetry/",
)
_SENDER = "OtelBatchSpanRecordProcessor"


class _Samples:
    """Counts, and writes down what it counted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._taken = 0
        self._telling = 0

    def take(self, _: int, frame: FrameType | None) -> None:
        self._taken += 1
        self._telling += _is_telling(frame)

    def write(self, _: int, __: FrameType | None) -> None:
        sender = next((one.ident for one in threading.enumerate() if one.name == _SENDER), None)
        sent = 0.0 if sender is None else time.clock_gettime(time.pthread_getcpuclockid(sender))
        line = {
            "process": time.process_time(),
            "main": time.thread_time(),
            "sender": sent,
            "samples": self._taken,
            "telling": self._telling,
        }
        with self._path.open("a") as log:
            log.write(json.dumps(line) + "\n")


def _is_telling(frame: FrameType | None) -> bool:
    """Whether our innermost function tells spans; what it calls of other libraries, and of contracts, is its work."""
    while frame is not None:
        path = frame.f_code.co_filename
        if any(part in path for part in _TELLING):
            return True
        if "/fairlead_" in path and "/fairlead_contracts/" not in path:
            return False
        frame = frame.f_back
    return False


if "BENCH_SAMPLES" in os.environ and any("fairlead_" in word for word in sys.orig_argv):
    _found = _Samples(Path(os.environ["BENCH_SAMPLES"]) / f"{os.getpid()}.log")
    signal.signal(signal.SIGPROF, _found.take)
    signal.signal(signal.SIGUSR2, _found.write)
    signal.setitimer(signal.ITIMER_PROF, _EVERY_SECONDS, _EVERY_SECONDS)
