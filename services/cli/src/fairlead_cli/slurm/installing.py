"""`fairlead slurm install`: write the hooks of a partition whose jobs run as pods, and say what slurm.conf lacks for them."""

from pathlib import Path

from fairlead_cli.console import write_line
from fairlead_cli.errors import InputError
from fairlead_slurm import CONF, HookSettings, hook_files, missing_lines

EXIT_LINES_MISSING = 1


def install(settings: HookSettings, conf: Path | None) -> int:
    """Write the files, and nothing else; returns 1 where slurm.conf lacks lines.

    Args:
        settings: of the hooks.
        conf: an existing slurm.conf to look at; none is looked at if None.

    Raises:
        InputError: the folder cannot be written, or slurm.conf not read.
    """
    folder = Path(settings.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # the bodies of jobs run as their users
        for name, file in hook_files(settings).items():
            (folder / name).write_text(file.text, encoding="utf-8")
            (folder / name).chmod(0o755 if file.executable else 0o644)
    except OSError as error:
        raise InputError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    write_line(
        f"Written to {folder}. Nothing else was changed: {folder / CONF} holds the lines for slurm.conf."
    )
    if conf is None:
        return 0
    missing = missing_lines(settings, settings_of(conf))
    if not missing:
        write_line(f"{conf} has all of them.")
        return 0
    write_line(f"{conf} lacks, or has otherwise:")
    for key, value in missing.items():
        write_line(f"  {key}={value}")
    return EXIT_LINES_MISSING


def settings_of(conf: Path) -> dict[str, str]:
    """What a slurm.conf says, by key as slurm.conf(5) writes it; of several lines the last counts. Included files are not read.

    Raises:
        InputError: it cannot be read.
    """
    try:
        lines = conf.read_text(errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{conf} cannot be read: {error.strerror}") from error
    found = {}
    for line in lines:
        key, equals, value = line.partition("#")[0].partition("=")
        if equals:
            found[key.strip().lower()] = value.strip()
    return found
