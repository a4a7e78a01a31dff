"""Chooses the entry queue of a submission. Pure.

A tenant has one entry queue or several: its accounts, or the LocalQueues of its namespace. A submission may name one, or
the queue that one leads to; without a word it takes the tenant's default.
"""

from collections.abc import Mapping

import msgspec

DEFAULT = "default"
"""The entry queue of this name is the tenant's default: what Kueue calls its default LocalQueue."""


class EntryQueue(msgspec.Struct, frozen=True):
    """An entry queue, and the queue that it leads to."""

    name: str
    queue: str


def entry_queue_for(entries: Mapping[str, str], wanted: str | None) -> EntryQueue | None:
    """The entry queue that a submission takes.

    Args:
        entries: the tenant's, by name, with the queue that each leads to.
        wanted: an entry queue's name, else that of a queue that one leads to; None for the tenant's default.

    Returns:
        None where none fits. Of several that lead to the queue that is wanted, the first by name.
    """
    if wanted is None:
        name = DEFAULT if DEFAULT in entries else min(entries, default=None)
    elif wanted in entries:
        name = wanted
    else:
        name = min((name for name, queue in entries.items() if queue == wanted), default=None)
    return None if name is None else EntryQueue(name, entries[name])
