"""`fairlead slurm install`: write the hooks that run a partition's jobs as pods, and check slurm.conf."""

from collections.abc import Mapping
from pathlib import Path

from fairlead_cli.console import write_line
from fairlead_cli.errors import InputError, unreadable
from fairlead_cli.slurm.clusters import INCLUDE, settings_of
from fairlead_cli.slurm.flags import HookFlags
from fairlead_slurm.hooks.installing import CONF, HookSettings, hook_files
from fairlead_slurm.hooks.slurm_conf import conf_dangers, lua_dangers, missing_lines, replaced_hooks

EXIT_LINES_MISSING = 1
_JOB_SUBMIT = "job_submit.lua"


def install(folder: Path, flags: HookFlags) -> int:
    """Write the files, and nothing else; returns 1 where a slurm.conf was given that lacks lines.

    Raises:
        InputError: a flag cannot be written down safely, the folder cannot be written, or slurm.conf not read.
    """
    settings, conf = _settings(folder.absolute(), flags), flags.slurm_conf
    has = None if conf is None else settings_of(conf)
    _write(settings, has)
    write_line(
        f"Written to {settings.folder}. Nothing else was changed: {Path(settings.folder, CONF)} holds the lines for slurm.conf."
    )
    if conf is None or has is None:
        return 0
    missing = missing_lines(settings, has)
    write_line(f"{conf} lacks, or has otherwise:" if missing else f"{conf} has all of them.")
    for key, value in missing.items():
        write_line(f"  {key}={value}")
    _warn(settings, conf, has)
    return EXIT_LINES_MISSING if missing else 0


def _settings(folder: Path, flags: HookFlags) -> HookSettings:
    try:
        return HookSettings(
            folder=str(folder),
            partition=flags.partition,
            socket=str(flags.socket),
            python=str(flags.python),
            away=flags.away,
            check=flags.check,
            timeout=flags.timeout,
            tokens=flags.tokens,
            endpoints=flags.endpoint,
            authority="" if flags.ca is None else str(flags.ca),
            munge_socket="" if flags.munge_socket is None else str(flags.munge_socket),
        )
    except ValueError as error:
        raise InputError(str(error)) from error


def _write(settings: HookSettings, has: Mapping[str, str] | None) -> None:
    folder = Path(settings.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # the bodies of jobs run as their users
        for name, file in hook_files(settings, has).items():
            (folder / name).write_text(file.text, encoding="utf-8")
            (folder / name).chmod(0o755 if file.executable else 0o644)
    except OSError as error:
        raise InputError(f"{error.filename or folder} cannot be written: {error.strerror}") from error


def _warn(settings: HookSettings, conf: Path, has: Mapping[str, str]) -> None:
    beside = conf.parent / _JOB_SUBMIT
    try:
        lua = beside.read_text(errors="replace") if beside.exists() else None
    except OSError as error:
        raise unreadable(beside, error) from error
    dangers = [*replaced_hooks(settings, has), *lua_dangers(settings, lua), *conf_dangers(has)]
    if dangers:
        write_line("Before you restart slurmctld:")
    for one in dangers:
        write_line(f"  {one.what} {one.why}")
        write_line(f"    {one.mend}")
    if any(key.split()[:1] == [INCLUDE] for key in has):
        write_line("It includes other files, which were not read.")
