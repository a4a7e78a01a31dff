"""`fairlead slurm validate`: what Slurm would refuse a batch script for, told before it is submitted."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from fairlead_cli.errors import ClusterError, InputError
from fairlead_cli.options import Format
from fairlead_cli.printing import Result, print_result
from fairlead_cli.published import published
from fairlead_cli.slurm.clusters import controller
from fairlead_slurm import BatchTarget, Remark, SlurmError, fit, read

_SECONDS = 5.0
"""For each question to slurmctld: a person waits, and the form can be told without it."""
EXIT_REFUSED = 1


class BatchVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What `fairlead slurm validate -o json` prints."""

    script: str
    cluster: str | None
    """Whose partitions and accounts it was held against; null where only the form was looked at."""
    form_alone: str
    """Why only the form was looked at; empty where all was."""
    refused: bool
    remarks: list[Remark]


async def validate(script: Path, conf: Path | None, form: Format) -> int:
    """Look at a script, print what is found, and return the exit code.

    Raises:
        InputError: the script cannot be read.
    """
    found = await look(script, conf)
    result = Result(
        document=lambda: published(found),
        view=lambda _columns: Group(*_view(found)),
        names=lambda: [str(one.line) for one in found.remarks if one.refused],
    )
    print_result(result, form)
    return EXIT_REFUSED if found.refused else 0


async def look(script: Path, conf: Path | None) -> BatchVerdict:
    """Look at the script's form and, where slurmctld answers, at what it asks for.

    Raises:
        InputError: the script cannot be read.
    """
    read_script = read(_content(script))
    remarks = list(read_script.remarks)
    cluster, why = None, ""
    try:
        cluster, target = await _target(conf)
        remarks += fit(read_script, target)
    except (SlurmError, ClusterError) as error:
        why = str(error)
    return BatchVerdict(
        script=str(script),
        cluster=cluster,
        form_alone=why,
        refused=any(one.refused for one in remarks),
        remarks=sorted(remarks, key=lambda one: one.line),
    )


def _content(script: Path) -> bytes:
    try:
        return script.read_bytes()
    except OSError as error:
        raise InputError(f"{script} cannot be read: {error.strerror}") from error


async def _target(conf: Path | None) -> tuple[str, BatchTarget]:
    asked = controller(conf, seconds=_SECONDS)
    settings = await asked.settings()
    accounts = {one.name for one in await asked.accounts()} if settings.enforces_associations else set()
    target = BatchTarget(
        partitions=await asked.partitions(),
        nodes=await asked.nodes(),
        # None of them: slurmctld does not tell this user.
        accounts=frozenset({*accounts, "root"}) if accounts else None,
        array_size=settings.array_size,
    )
    return settings.cluster, target


def _view(found: BatchVerdict) -> Iterator[RenderableType]:
    for remark in found.remarks:
        mark, style = ("refused", "bold red") if remark.refused else ("warning", "yellow")
        where = f"{found.script}:{remark.line}" if remark.line else found.script
        yield Text.assemble(where, ": ", (mark, style), f": {remark.says}")
        if remark.mend:
            yield Text(f"    {remark.mend}", style="green")
    against = (
        f"held against cluster {found.cluster}"
        if found.cluster is not None
        else f"its form alone was looked at, not partitions and accounts: {found.form_alone}"
    )
    yield Text(f"{found.script}: {'refused' if found.refused else 'nothing stands against it'}; {against}")
