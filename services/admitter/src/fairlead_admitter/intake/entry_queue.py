"""Through which door a submission enters its queue. Pure.

A tenant has one door to a queue or several: its accounts, or the LocalQueues of its namespace. A submission may name
a door, or the queue behind one; without a word it takes the tenant's default door.
"""

from collections.abc import Mapping

import msgspec

DEFAULT = "default"
"""The door of this name is the tenant's default: what Kueue calls its default LocalQueue."""


class EntryQueue(msgspec.Struct, frozen=True):
    """One door, and the queue behind it."""

    name: str
    queue: str


def entry_queue_for(entries: Mapping[str, str], wanted: str | None) -> EntryQueue | None:
    """The door that a submission takes.

    Args:
        entries: the tenant's, by name, with the queue behind each.
        wanted: a door's name, else that of a queue behind one; None for the tenant's default.

    Returns:
        None where no door fits. Of several that lead to the queue that is wanted, the first by name.
    """
    if wanted is None:
        name = DEFAULT if DEFAULT in entries else min(entries, default=None)
    elif wanted in entries:
        name = wanted
    else:
        name = min((name for name, queue in entries.items() if queue == wanted), default=None)
    return None if name is None else EntryQueue(name, entries[name])
