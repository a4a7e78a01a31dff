"""Traces of real clusters: reading them, and the slice of Philly that ships with this package.

`data/philly/README.md` tells where the shipped trace comes from and what it lacks.
"""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import msgspec

from fairlead_contracts.base.errors import shown
from fairlead_contracts.base.places import not_utf8
from fairlead_contracts.base.reading import in_words
from fairlead_sim.errors import TraceError

TENANT_COLUMNS = ("tenant", "vc", "cluster")
"""Columns of which a trace has one, to name the tenant."""
COLUMNS = ("job", "submit_s", "gpus", "duration_s")
_GZIPPED = b"\x1f\x8b"
"""First bytes of what gzip packed (RFC 1952, 2.3.1)."""


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
        text = (gzip.decompress(content) if content[:2] == _GZIPPED else content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(f"{path} cannot be read: {not_utf8(error)}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TraceError(f"{path} cannot be read: it begins as gzip does, and is broken") from error
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from error
    return _parse(text, source=str(path))


def _parse(text: str, *, source: str) -> list[TraceJob]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    try:
        found = rows.fieldnames or []
        tenant = next((column for column in TENANT_COLUMNS if column in found), None)
        missing = [column for column in COLUMNS if column not in found]
        if tenant is None or missing:
            wanted = [*missing, *([] if tenant else ["tenant"])]
            raise TraceError(
                f"{source}: has no column {', '.join(wanted)}; a trace needs tenant, {', '.join(COLUMNS)}"
            )
        jobs = [_read(row, tenant, f"{source}, line {rows.line_num}") for row in rows]
    except csv.Error as error:
        raise TraceError(f"{source}, line {rows.reader.line_num}: is not CSV: {error}") from error
    if not jobs:
        raise TraceError(f"{source}: has no jobs")
    return jobs


def _read(row: dict[str, str | None], tenant: str, where: str) -> TraceJob:
    job = TraceJob(
        tenant=row[tenant] or "",
        job=row["job"] or "",
        submit_seconds=_number(row, "submit_s", float, where),
        gpus=_number(row, "gpus", int, where),
        duration_seconds=_number(row, "duration_s", float, where),
    )
    if not (math.isfinite(job.submit_seconds) and math.isfinite(job.duration_seconds)) or job.gpus < 0:
        raise TraceError(f"{where}: submit, duration and gpus must be finite, and gpus not negative")
    return job


def _number[N: (int, float)](row: dict[str, str | None], column: str, kind: type[N], where: str) -> N:
    written = row[column]
    if written is None:
        raise TraceError(f"{where}: {column} is missing")
    try:
        return kind(written)
    except ValueError as error:
        raise TraceError(f"{where}: {column} must be {in_words(kind)} (found {shown(written)})") from error


def by_tenant(jobs: Iterable[TraceJob]) -> dict[str, list[TraceJob]]:
    """The jobs of each tenant in order of submission; equal instants keep the trace's order."""
    groups: dict[str, list[TraceJob]] = {}
    for job in jobs:
        groups.setdefault(job.tenant, []).append(job)
    return {
        tenant: sorted(found, key=lambda job: job.submit_seconds) for tenant, found in sorted(groups.items())
    }
