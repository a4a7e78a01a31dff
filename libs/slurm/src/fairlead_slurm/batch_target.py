"""What a cluster's batch scripts are measured by, as slurmctld tells it to whoever asks."""

from typing import Protocol

from fairlead_slurm.batch_fit import BatchTarget
from fairlead_slurm.batch_pods import PodSite
from fairlead_slurm.cluster import SlurmAccount, SlurmNode, SlurmPartition, SlurmSettings
from fairlead_slurm.limits import AccountLimits

_LIMITED = frozenset(("limits", "safe", "all"))
"""Words of AccountingStorageEnforce by which limits count."""


class TargetSource(Protocol):
    """What is asked of a slurmctld."""

    async def settings(self) -> SlurmSettings:
        """The cluster's settings."""

    async def partitions(self) -> list[SlurmPartition]:
        """All partitions."""

    async def nodes(self) -> list[SlurmNode]:
        """All nodes."""

    async def accounts(self) -> list[SlurmAccount]:
        """The tree of accounts."""

    async def limits(self) -> AccountLimits:
        """Limits of accounts, users and QOS."""


async def batch_target(source: TargetSource, settings: SlurmSettings, pods: PodSite | None) -> BatchTarget:
    """Ask for what the scripts of all users are measured by.

    Raises:
        SlurmError: slurmctld does not answer.
    """
    accounts = {one.name for one in await source.accounts()} if settings.enforces_associations else set()
    limited = bool(_LIMITED & set(settings.enforced))
    return BatchTarget(
        partitions=await source.partitions(),
        nodes=await source.nodes(),
        # None of them: slurmctld does not tell whoever asks.
        accounts=frozenset({*accounts, "root"}) if accounts else None,
        array_size=settings.array_size,
        limits=await source.limits() if limited else AccountLimits(),
        pods=pods,
    )
