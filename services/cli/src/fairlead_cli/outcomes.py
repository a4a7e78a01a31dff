"""What commands that look or change something say to programs; people read the same in words."""

from collections.abc import Iterable, Sequence

import msgspec

from fairlead_cli.options import Format
from fairlead_contracts.messages.control import Mode


class ControlSaid(msgspec.Struct, frozen=True, kw_only=True):
    """What `pause`, `resume` or `release` set, and where it holds."""

    pool: str | None
    """None for all of them."""
    mode: Mode
    by: str
    why: str
    stricter: Sequence[str]
    """Pools with a stricter word of their own; an empty name stands for all pools."""
    clusters: Sequence[str]
    """Where it holds; none where no scorer answers."""


class ClassGranted(msgspec.Struct, frozen=True, kw_only=True):
    """What `approve` granted to a job, or took back."""

    job: str
    uid: str
    job_class: str | None
    """None where it was taken back."""
    revision: int
    """Of the policy."""
    written: bool = True
    """False where the job had this very grant already: the policy is left as it stands."""


class PolicyChecked(msgspec.Struct, frozen=True, kw_only=True):
    """What `policy check` says of a file."""

    file: str
    valid: bool
    tenants: int = 0
    pools: int = 0
    problems: Sequence[str] = ()
    """Why it is not valid."""
    warnings: Sequence[str] = ()
    """What has no effect."""
    notes: Sequence[str] = ()
    """What its aging comes to, and what it stands for."""


class PolicyCompared(msgspec.Struct, frozen=True, kw_only=True):
    """What `policy diff` finds."""

    file: str
    revision: int
    """Of the policy that is in force."""
    changes: Sequence[str]
    """`- key: value` as it is, `+ key: value` as it would be."""
    notes: Sequence[str]
    refused: str = ""
    """Why `policy apply` would refuse the file as it is."""


class PolicyPut(msgspec.Struct, frozen=True, kw_only=True):
    """What `policy apply` or `policy revert` came to."""

    revision: int
    written: bool
    """An equal one is left as it stands."""
    notes: Sequence[str]
    """What the person should know, a line each."""


class NatsChecked(msgspec.Struct, frozen=True, kw_only=True):
    """What `nats check` finds."""

    users: int
    faults: Sequence[str]


class NatsProvisioned(msgspec.Struct, frozen=True, kw_only=True):
    """What `nats provision` made or changed; with --dry-run, what it would."""

    dry_run: bool
    changes: Sequence[str]
    refused: Sequence[str]


def is_for_people(form: Format) -> bool:
    """Whether words are asked for."""
    return form in ("table", "wide")


def tell(text: str, form: Format) -> None:
    """A line of what a command came to: for people the result itself, beside a document a remark."""
    from fairlead_cli.console import say, write_line

    (write_line if is_for_people(form) else say)(text)


def print_outcome(found: msgspec.Struct, names: Iterable[str], form: Format) -> None:
    """Print it for programs; people have read it already."""
    if is_for_people(form):
        return
    from fairlead_cli.printing import as_text, print_names
    from fairlead_cli.published import published

    if form == "name":
        print_names(names)
    else:
        from fairlead_cli.console import write_line

        write_line(as_text(published(found), form))
