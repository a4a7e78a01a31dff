"""Traces of real clusters: reading them, and the slice of Philly that ships with this package.

`data/philly/README.md` tells where the shipped trace comes from and what it lacks.
"""

import csv
import gzip
import io
import math
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import msgspec

from fairlead_sim.errors import TraceError

TENANT_COLUMNS = ("tenant", "vc", "cluster")
"""Columns of which a trace has one, to name the tenant."""
COLUMNS = ("job", "submit_s", "gpus", "duration_s")


class TraceJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job of a trace, in the trace's own time."""

    tenant: str
    job: str
    submit_seconds: float
    """Time of submission; since the tenant's first job, where tenants have no common clock."""
    gpus: int
    duration_seconds: float


def shipped_trace() -> list[TraceJob]:
    """The Philly slice: 15,264 jobs of 15 virtual clusters, tenants named `vc-<id>`."""
    packed = resources.files("fairlead_sim").joinpath("data/philly/philly_vc_jobs.csv.gz").read_bytes()
    jobs = _parse(gzip.decompress(packed).decode(), source="the shipped trace")
    return [msgspec.structs.replace(job, tenant=f"vc-{job.tenant}") for job in jobs]


def read_trace(path: str | Path) -> list[TraceJob]:
    """A trace from a CSV file, plain or gzipped.

    Columns: `tenant` (or `vc`, or `cluster`), `job`, `submit_s`, `gpus`, `duration_s`; others are left alone.

    Raises:
        TraceError: the file cannot be read, a column is missing or a value is not a number.
    """
    try:
        content = Path(path).read_bytes()
        text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: {error}") from error
    return _parse(text, source=str(path))


def _parse(text: str, *, source: str) -> list[TraceJob]:
    rows = csv.DictReader(io.StringIO(text))
    found = rows.fieldnames or []
    tenant = next((column for column in TENANT_COLUMNS if column in found), None)
    missing = [column for column in COLUMNS if column not in found]
    if tenant is None or missing:
        wanted = [*missing, *([] if tenant else ["tenant"])]
        raise TraceError(
            f"{source}: has no column {', '.join(wanted)}; a trace needs tenant, {', '.join(COLUMNS)}"
        )
    jobs = [_read(row, tenant, f"{source}, line {number}") for number, row in enumerate(rows, start=2)]
    if not jobs:
        raise TraceError(f"{source}: has no jobs")
    return jobs


def _read(row: dict[str, str], tenant: str, where: str) -> TraceJob:
    try:
        job = TraceJob(
            tenant=row[tenant],
            job=row["job"],
            submit_seconds=float(row["submit_s"]),
            gpus=int(row["gpus"]),
            duration_seconds=float(row["duration_s"]),
        )
    except (TypeError, ValueError) as error:
        raise TraceError(f"{where}: {error}") from error
    if not (math.isfinite(job.submit_seconds) and math.isfinite(job.duration_seconds)) or job.gpus < 0:
        raise TraceError(f"{where}: submit, duration and gpus must be finite, and gpus not negative")
    return job


def by_tenant(jobs: Iterable[TraceJob]) -> dict[str, list[TraceJob]]:
    """The jobs of each tenant in order of submission; equal instants keep the trace's order."""
    groups: dict[str, list[TraceJob]] = {}
    for job in jobs:
        groups.setdefault(job.tenant, []).append(job)
    return {
        tenant: sorted(found, key=lambda job: job.submit_seconds) for tenant, found in sorted(groups.items())
    }
