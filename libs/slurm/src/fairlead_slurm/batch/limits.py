"""A batch script against the limits of its account, its user and its QOS. Pure.

A QOS's limit stands in the place of an association's, resource by resource, and the partition's QOS in the place of the
job's (https://slurm.schedmd.com/resource_limits.html). Which QOS a job has that names none is its association's to say, and
not told: then a limit of an association counts only where no QOS says otherwise.
"""

from collections.abc import Iterator, Sequence

from fairlead_contracts.base.instants import SECOND
from fairlead_slurm.batch.options import Remark
from fairlead_slurm.batch.values import seconds
from fairlead_slurm.batch.wants import Given, amount_in_words, line_of, of_each_node, of_the_job, value_of
from fairlead_slurm.cluster import SlurmPartition
from fairlead_slurm.limits import AccountLimits, AllowedAmounts, Association

_THOUSANDTHS = 1000


def beyond_limits(
    given: Given, partitions: Sequence[SlurmPartition], known: AccountLimits, user: str
) -> Iterator[Remark]:
    """Remarks on what the script asks for beyond what its account, user or QOS may ever have."""
    qos = value_of(given, "qos")
    if qos and known.qualities and qos.lower() not in known.qualities:
        some = ", ".join(sorted(known.qualities)[:8])
        yield Remark(line=line_of(given, "qos"), says=f"there is no QOS {qos}", mend=f"There are {some}.")
        return
    account = value_of(given, "account").lower() or _default_account(known, user)
    own = _own(known, account, user)
    if own is None:
        if account and user and any(one.account == account and not one.user for one in known.associations):
            yield Remark(line=line_of(given, "account"), says=f"user {user} has no part in account {account}")
        return
    over = [known.qualities[one.qos] for one in partitions if one.qos in known.qualities]
    if qos:
        yield from _beyond(given, f"QOS {qos}", known.qualities.get(qos.lower(), AllowedAmounts()), over)
        over = [*over, known.qualities.get(qos.lower(), AllowedAmounts())]
    else:
        over = list(known.qualities.values())
    for name, limits in own:
        yield from _beyond(given, name, limits, over)


def _default_account(known: AccountLimits, user: str) -> str:
    return next(
        (one.account for one in known.associations if user and one.user == user and one.is_default), ""
    )


def _own(known: AccountLimits, account: str, user: str) -> list[tuple[str, AllowedAmounts]] | None:
    """The limits that count, nearest first, each with a name: of the user in the account, and of every account above it.

    A limit of each job is handed down to where it is not set otherwise, so the nearest one knows it. None where the user is not
    of the account.
    """
    accounts = {one.account: one for one in known.associations if not one.user}
    users = [one for one in known.associations if one.account == account and user and one.user == user]
    if account not in accounts or (user and not users):
        return None
    found = [(f"user {user} in account {account}", users[0].limits)] if users else []
    above: Association | None = accounts[account]
    nearest = True
    while above is not None:
        whole = above.limits
        # Farther up only what all jobs together may have is its own.
        found.append(
            (
                f"account {above.account}",
                whole if nearest and not users else AllowedAmounts(group=whole.group),
            )
        )
        above, nearest = accounts.get(above.parent), False
    return found


def _beyond(
    given: Given, name: str, limits: AllowedAmounts, over: Sequence[AllowedAmounts]
) -> Iterator[Remark]:
    """Remarks on what is beyond these limits; a limit that one of `over` states, too, does not count."""
    if limits.jobs == 0 and all(one.jobs is None for one in over):
        yield Remark(line=line_of(given, "account", "qos"), says=f"{name} may run no jobs")
    wanted = seconds(given["time"].value) if "time" in given else None
    if limits.wall is not None and all(one.wall is None for one in over):
        most = limits.wall // SECOND
        if "time" in given and (wanted is None or wanted > most):
            yield Remark(
                line=given["time"].line,
                says=f"--time={given['time'].value} is more than {name} may ask for",
                mend=f"At most {most // 60} minutes.",
            )
    whole, each = of_the_job(given), of_each_node(given)
    kinds = (
        (whole, limits.job, [one.job for one in over], "in a job"),
        (each, limits.node, [one.node for one in over], "of a job on a node"),
        (whole, limits.group, [one.group for one in over], "in all"),
    )
    for wants, most_of, others, words in kinds:
        for want in wants:
            if want.resource not in most_of or any(want.resource in other for other in others):
                continue
            limit = most_of[want.resource]
            most = limit if want.resource == "mem" else limit // _THOUSANDTHS
            if want.amount > most:
                yield Remark(
                    line=want.line,
                    says=f"{amount_in_words(want.resource, want.amount)}: {name} may have {amount_in_words(want.resource, most)} {words}",
                )
