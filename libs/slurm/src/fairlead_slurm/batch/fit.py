"""A batch script against a cluster: would Slurm refuse it, or never start it? Pure.

Only what is certain is said. A limit of the account or of a QOS counts where no other one may stand in its place.
"""

from collections.abc import Iterator, Sequence

import msgspec

from fairlead_contracts.base.instants import SECOND
from fairlead_slurm.batch.limits import beyond_limits
from fairlead_slurm.batch.options import BatchOption, Remark
from fairlead_slurm.batch.pods import PodSite, unfit_for_pods
from fairlead_slurm.batch.script import BatchScript
from fairlead_slurm.batch.values import fewest_nodes, highest_task, problem, seconds
from fairlead_slurm.batch.wants import Given, amount_in_words, line_of, of_a_node, of_all_nodes, value_of
from fairlead_slurm.cluster import SlurmNode, SlurmPartition
from fairlead_slurm.limits import AccountLimits

_THOUSANDTHS = 1000
_CLOSED = ("DRAIN", "INACTIVE")


class BatchTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A site as batch scripts are measured by it."""

    partitions: Sequence[SlurmPartition]
    nodes: Sequence[SlurmNode]
    accounts: frozenset[str] | None
    """Accounts that a job may name; None where any will do, or slurmctld does not tell them."""
    array_size: int | None = None
    """MaxArraySize: an array's highest number is one less. None where it is not known."""
    limits: AccountLimits = AccountLimits()
    """Limits of accounts, users and QOS, where Slurm enforces them and tells them."""
    user: str = ""
    """The Unix user whose job it is; empty where that is not known."""
    pods: PodSite | None = None
    """The partition whose jobs run as pods; None where no partition's do."""


def fit(script: BatchScript, target: BatchTarget) -> list[Remark]:
    """Remarks on what Slurm would refuse of a script, or would let wait for ever."""
    return [remark for part in script.parts for remark in _part(part, target, script.size)]


def _part(part: Sequence[BatchOption], target: BatchTarget, size: int) -> Iterator[Remark]:
    # The last of several counts; what does not parse was said already.
    given = {option.name: option for option in part if not problem(option.name, option.value)}
    yield from _account(given, target)
    yield from _array(given, target)
    names = value_of(given, "partition")
    asked = names.split(",") if names else [one.name for one in target.partitions if one.is_default]
    line = line_of(given, "partition")
    if not asked:
        yield Remark(line=0, says="no partition is named, and the cluster has no default one")
    partitions = {one.name: one for one in target.partitions}
    known = [partitions[name] for name in asked if name in partitions]
    for name in asked:
        if name not in partitions:
            some = ", ".join(sorted(partitions)[:8])
            yield Remark(line=line, says=f"there is no partition {name}", mend=f"There are {some}.")
    yield from beyond_limits(given, known, target.limits, target.user)
    if target.pods is not None and target.pods.partition in asked:
        yield from unfit_for_pods(given, asked, size, target.pods)
    # Slurm takes a job of several partitions if one of them would.
    remarks = [list(_partition(given, one, target)) for one in known]
    if (
        remarks and len(known) == len(asked) and all(any(one.refused for one in found) for found in remarks)
    ) or len(remarks) == 1:
        yield from remarks[0]


def _account(given: Given, target: BatchTarget) -> Iterator[Remark]:
    account = value_of(given, "account")
    if account and target.accounts is not None and account.lower() not in target.accounts:
        some = ", ".join(sorted(target.accounts)[:8])
        yield Remark(
            line=line_of(given, "account"), says=f"there is no account {account}", mend=f"There are {some}."
        )


def _array(given: Given, target: BatchTarget) -> Iterator[Remark]:
    """Refuse task numbers from MaxArraySize on, as Slurm does, however few tasks there are (slurm.conf)."""
    highest = highest_task(value_of(given, "array"))
    if target.array_size is not None and highest >= target.array_size:
        most = target.array_size - 1
        yield Remark(
            line=line_of(given, "array"),
            says=f"task {highest}: the highest number that an array may have here is {most} (MaxArraySize)",
        )


def _partition(given: Given, partition: SlurmPartition, target: BatchTarget) -> Iterator[Remark]:
    name, line = partition.name, line_of(given, "partition")
    if partition.state in _CLOSED:
        yield Remark(line=line, says=f"partition {name} takes no jobs: it is {partition.state}")
    elif not partition.up:
        yield Remark(line=line, says=f"partition {name} is {partition.state}: jobs wait", refused=False)
    account = value_of(given, "account")
    allowed = partition.allowed_accounts
    if account and ((allowed and account not in allowed) or account in partition.denied_accounts):
        yield Remark(line=line_of(given, "account"), says=f"partition {name} is not for account {account}")
    yield from _time(given, partition)
    yield from _size(given, name, [node for node in target.nodes if name in node.partitions])


def _time(given: Given, partition: SlurmPartition) -> Iterator[Remark]:
    if "time" not in given or partition.max_time is None:
        return
    wanted = seconds(given["time"].value)
    most = partition.max_time // SECOND
    if wanted is None or wanted > most:
        days, rest = divmod(most, 86_400)
        yield Remark(
            line=given["time"].line,
            says=f"--time={given['time'].value} is more than partition {partition.name} gives",
            mend=f"At most {days}-{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.",
        )


def _size(given: Given, name: str, nodes: Sequence[SlurmNode]) -> Iterator[Remark]:
    """Compare what the job asks of one node, and of all, with the nodes of the partition."""
    wanted_nodes = fewest_nodes(value_of(given, "nodes"))
    if wanted_nodes > len(nodes):
        yield Remark(
            line=line_of(given, "nodes"), says=f"{wanted_nodes} nodes: partition {name} has {len(nodes)}"
        )
        return
    for want in of_all_nodes(given):
        most = sum(_has(node, want.resource) for node in nodes)
        if want.amount > most:
            yield Remark(
                line=want.line,
                says=f"{amount_in_words(want.resource, want.amount)} in all: partition {name} has {amount_in_words(want.resource, most)}",
            )
            return
    wants = of_a_node(given, wanted_nodes)
    for want in wants:
        most = max((_has(node, want.resource) for node in nodes), default=0)
        if want.amount > most:
            yield Remark(
                line=want.line,
                says=f"{amount_in_words(want.resource, want.amount)} on one node: no node of partition {name} has more than"
                f" {amount_in_words(want.resource, most)}",
            )
            return
    fitting = [node for node in nodes if all(_has(node, want.resource) >= want.amount for want in wants)]
    if wants and len(fitting) < max(1, wanted_nodes):
        together = ", ".join(amount_in_words(want.resource, want.amount) for want in wants)
        yield Remark(
            line=0,
            says=f"{together} on each of {wanted_nodes}: of partition {name} {len(fitting)} nodes are that large",
        )


def _has(node: SlurmNode, resource: str) -> int:
    if resource == "cpu":
        return node.resources.get("cpu", 0) // _THOUSANDTHS
    if resource == "mem":
        return node.resources.get("mem", 0)
    return node.gres.get(resource, 0)
