"""Parts that the plain installation leaves out: which commands need them, and how they are got."""

from fairlead_cli.errors import ProcessFailedError

_PARTS = frozenset(
    {
        "aiohttp",
        "fairlead_kube",
        "fairlead_sim",
        "fairlead_slurm",
        "kubernetes_asyncio",
        "numpy",
    }
)
"""What commands import that an extra brings; another module that is missing is a fault of ours, and shown as one."""
_EXTRAS = {"doctor": "kube", "watchdog": "kube", "slurm": "slurm"}
"""By command; all others that need more need what runs Fairlead on this machine (`local`)."""


class PartMissingError(ProcessFailedError):
    """The command needs what an extra brings. It ends with 4, as without a nats-server: `doctor` and others use 1 to 3."""


def missing_part(command: str, error: ModuleNotFoundError) -> PartMissingError | None:
    """What a person is told of a module that is not there; None where no extra brings it.

    Args:
        command: as typed, without what belongs to it.
        error: of the import.
    """
    if (error.name or "").partition(".")[0] not in _PARTS:
        return None
    extra = _EXTRAS.get(command, "local")
    return PartMissingError(
        f"`fairlead {command}` needs a part of Fairlead that is not installed, the extra {extra!r}: "
        "in a clone of Fairlead `make setup` brings it"
    )
