"""`make audit`: runs pip-audit, and says what its report means for the locked packages. Red unless all were looked up.

pip-audit ends alike over a package with a vulnerability and over an index that tells of none, as mirrors often do.
"""

import subprocess
import sys
from typing import NamedTuple

import msgspec


class Vulnerability(msgspec.Struct, frozen=True):
    """A known vulnerability of a package, and the versions without it."""

    id: str
    fix_versions: list[str] = []


class AuditedPackage(msgspec.Struct, frozen=True):
    """A locked package: its vulnerabilities, or the reason for which it was not looked up."""

    name: str
    version: str = ""
    vulns: list[Vulnerability] = []
    skip_reason: str = ""


class AuditReport(msgspec.Struct, frozen=True):
    """The report of pip-audit, in JSON."""

    dependencies: list[AuditedPackage]


class Verdict(NamedTuple):
    """The outcome of an audit, in lines."""

    lines: list[str]
    green: bool


def verdict(report: AuditReport) -> Verdict:
    """The vulnerabilities, then the packages that nobody looked up; green without either."""
    packages = report.dependencies
    unknown = [package for package in packages if package.skip_reason]
    lines = [
        f"{package.name} {package.version}: {found.id}, {_mended(found)}"
        for package in packages
        for found in package.vulns
    ]
    if unknown:
        lines.append(
            f"{len(unknown)} of {len(packages)} packages were not looked up, so nothing is known of them: the package index"
            f" that was asked does not tell of their vulnerabilities. The first: {unknown[0].skip_reason}"
        )
    return Verdict(lines or [f"no known vulnerability in {len(packages)} packages"], not lines)


def _mended(found: Vulnerability) -> str:
    return f"mended in {', '.join(found.fix_versions)}" if found.fix_versions else "not mended yet"


def main() -> int:
    """Print the verdict on what the command of the arguments reports; the exit code is 0 if it is green."""
    done = subprocess.run(sys.argv[1:], capture_output=True, check=False)
    try:
        found = verdict(msgspec.json.decode(done.stdout, type=AuditReport))
    except msgspec.DecodeError:
        words = done.stderr.decode(errors="replace").strip()
        found = Verdict([f"pip-audit gave no report: {words}"], green=False)
    for line in found.lines:
        sys.stdout.write(f"audit: {line}\n")
    return 0 if found.green else 1


if __name__ == "__main__":
    sys.exit(main())
