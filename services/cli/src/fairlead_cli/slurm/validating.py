"""`fairlead slurm validate`: what Slurm would refuse a batch script for, told before it is submitted."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from fairlead_cli.errors import ClusterError, InputError, unreadable
from fairlead_cli.options import Format
from fairlead_cli.printing import print_answer
from fairlead_cli.slurm.clusters import controller
from fairlead_cli.slurm.flags import ScriptFlags
from fairlead_cli.slurm.survey import effective_user
from fairlead_slurm.batch.checks import ImageRule, batch_target, check_batch
from fairlead_slurm.batch.fit import BatchTarget
from fairlead_slurm.batch.options import Remark
from fairlead_slurm.batch.pods import PodSite
from fairlead_slurm.batch.script import read
from fairlead_slurm.errors import SlurmError
from fairlead_slurm.hooks.installing import pods_partition
from fairlead_slurm.images.credentials import CredentialsUnreadableError, credentials, usual_file
from fairlead_slurm.images.registry import Registries

_SECONDS = 5.0
"""Seconds for each question to slurmctld: a person waits, and the form can be told without it."""
EXIT_REFUSED = 1


class BatchVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fairlead slurm validate -o json`."""

    script: str
    cluster: str | None
    """Cluster whose partitions and accounts the script was held against; null where only the form was looked
    at."""
    form_alone: str
    """Reason for which only the form was looked at; empty where all was."""
    refused: bool
    remarks: list[Remark]


async def validate(script: Path, flags: ScriptFlags, form: Format) -> int:
    """Look at a script, print what is found, and return the exit code.

    Raises:
        InputError: the script, or the file with credentials, cannot be read.
    """
    found = await look(script, flags)
    refused = (str(one.line) for one in found.remarks if one.refused)
    print_answer(found, form, view=lambda _screen: Group(*_view(found)), names=refused)
    return EXIT_REFUSED if found.refused else 0


async def look(path: Path, flags: ScriptFlags) -> BatchVerdict:
    """Look at the script's form and, where slurmctld answers, at what it asks for.

    Raises:
        InputError: the script, or the file with credentials, cannot be read.
    """
    script = read(_content(path))
    remarks = list(script.remarks)
    cluster, why = None, ""
    try:
        cluster, target = await _target(flags)
        remarks += await check_batch(script, target, _registries(flags), ImageRule(flags.images))
    except (SlurmError, ClusterError) as error:
        why = str(error)
    return BatchVerdict(
        script=str(path),
        cluster=cluster,
        form_alone=why,
        refused=any(one.refused for one in remarks),
        remarks=sorted(remarks, key=lambda one: one.line),
    )


def _registries(flags: ScriptFlags) -> Registries:
    file = flags.registry_auth or usual_file(os.environ)
    try:
        known = {} if file is None else credentials(file)
    except CredentialsUnreadableError as error:
        raise InputError(f"the file with credentials for registries cannot be read: {error}") from error
    return Registries(known, seconds=flags.registry_seconds, plain=flags.plain_registry)


def _content(script: Path) -> bytes:
    try:
        return script.read_bytes()
    except OSError as error:
        raise unreadable(script, error) from error


async def _target(flags: ScriptFlags) -> tuple[str, BatchTarget]:
    asked = controller(flags.slurm_conf, seconds=_SECONDS)
    settings = await asked.settings()
    partition = flags.pods_partition or pods_partition(settings.hooks.get("PrologSlurmctld", ""))
    pods = None if partition is None else PodSite(partition=partition)
    target = await batch_target(asked, settings, pods)
    return settings.cluster, msgspec.structs.replace(target, user=flags.user or effective_user())


def _view(found: BatchVerdict) -> Iterator[RenderableType]:
    for remark in found.remarks:
        mark, style = ("refused", "bold red") if remark.refused else ("warning", "yellow")
        where = f"{found.script}:{remark.line}" if remark.line else found.script
        yield Text.assemble(where, ": ", (mark, style), f": {remark.says}")
        if remark.mend:
            yield Text(f"    {remark.mend}", style="green")
    against = (
        f"checked against cluster {found.cluster}"
        if found.cluster is not None
        else f"only its form was checked, not partitions and accounts: {found.form_alone}"
    )
    yield Text(f"{found.script}: {'refused' if found.refused else 'nothing found against it'}; {against}")
