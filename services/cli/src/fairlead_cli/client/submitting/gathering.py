"""Gathering of the jobs to publish from what a person typed."""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairlead_cli.client.submitting.flags import JobFlags
from fairlead_cli.client.submitting.reading import Defaults, Draft, draft, read_file, read_standard_input
from fairlead_cli.errors import InputError

GPU = "nvidia.com/gpu"
STANDARD_INPUT = "-"


def asked_by(flags: JobFlags) -> dict[str, str]:
    """The amounts that the flags ask for, by resource.

    Raises:
        InputError: a --demand is not NAME=QUANTITY.
    """
    named = {"cpu": flags.cpu, "memory": flags.memory, GPU: flags.gpus}
    asked = {resource: amount for resource, amount in named.items() if amount is not None}
    for pair in flags.demand:
        resource, equals, amount = pair.partition("=")
        if not (resource and equals and amount):
            raise InputError(f"--demand {pair!r}: must be NAME=QUANTITY, as in nvidia.com/gpu=8")
        asked[resource] = amount
    return asked


def template_by(flags: JobFlags) -> dict[str, object]:
    """The template of the job's pods as the flags describe it.

    Raises:
        InputError: an --env is not NAME=VALUE, or a quotation mark is missing.
    """
    env: dict[str, str] = {}
    for pair in flags.env:
        variable, equals, value = pair.partition("=")
        if not (variable and equals):
            raise InputError(f"--env {pair!r}: must be NAME=VALUE")
        env[variable] = value
    fields: dict[str, object] = {
        "image": flags.image,
        "kind": flags.kind,
        "command": _words("--command", flags.command),
        "args": _words("--args", flags.args),
        "env": env or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _words(flag: str, text: str | None) -> list[str] | None:
    try:
        return None if text is None else shlex.split(text)
    except ValueError as error:
        raise InputError(f"{flag} {text!r}: {error}") from error


def defaults_of(flags: JobFlags) -> Defaults:
    """The values that a job of a file takes from the flags where it says nothing itself."""
    fields: dict[str, object] = {
        "class": flags.job_class,
        "pods": flags.pods,
        "queue": flags.queue,
        "run_seconds": flags.run_seconds,
        "run_limit_seconds": flags.run_limit_seconds,
        "id": flags.id,
        "frontend": flags.frontend,
        "demand": asked_by(flags) or None,
        "template": template_by(flags) or None,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return Defaults(cluster=flags.cluster, tenant=flags.tenant, fields=given)


def gather(file: Path | None, flags: JobFlags) -> list[Draft]:
    """The jobs to publish, all of them.

    Raises:
        InputError: something cannot be read, there is nothing to publish, or one id would name many jobs.
    """
    defaults = defaults_of(flags)
    source = "standard input" if str(file) == STANDARD_INPUT else str(file or "")
    drafts = list(_drafts(_found(file, flags), defaults, source))
    if not drafts:
        raise InputError(f"{source}: there is no job in it")
    names = {(job.tenant, job.id) for job in drafts}
    if flags.id is not None and len(drafts) > 1:
        raise InputError("--id names one job, but there are several; give them ids of their own")
    if len(names) < len(drafts):
        raise InputError(f"{len(drafts) - len(names)} jobs have the id of another one of the same tenant")
    return drafts


def _drafts(found: Iterable[object], defaults: Defaults, source: str) -> Iterator[Draft]:
    """The jobs, each completed; what is wrong with one of a file is told with its number there."""
    for number, one in enumerate(found, start=1):
        try:
            yield draft(one, defaults)
        except InputError as error:
            if not source:
                raise
            raise InputError(f"{source}: job {number}: {error}", hint=error.hint) from error


def _found(file: Path | None, flags: JobFlags) -> Iterator[object]:
    if file is None:
        if not asked_by(flags):
            raise InputError(
                "there is nothing to submit",
                hint="Say what the job asks for (--gpus 1 --cpu 4 --memory 16Gi), name a file, or give - for JSON lines.",
            )
        yield {}
    elif str(file) == STANDARD_INPUT:
        yield from read_standard_input()
    else:
        yield from read_file(file)
