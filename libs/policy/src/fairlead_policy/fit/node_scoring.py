"""Which of the nodes that have room take how many pods of one shape."""

import heapq

import numpy as np

from fairlead_policy.fit.node_table import Ints

type Shares = list[tuple[int, int]]
"""(row of the node, pods), no node twice."""


def fewest(room: Ints, pods: int, load: Ints, rivals: Ints) -> Shares:
    """As few nodes as can be: nodes that the gang uses already, then the roomiest.

    The last node is the one with least room of those with enough. With `rivals` and `load` all equal this is the
    smallest number of nodes there is.

    Args:
        room: pods that each node takes.
        pods: to be placed; fewer are where there is not room for all.
        load: pods of the gang that each node has.
        rivals: nodes with the smallest number are taken first, whatever their room.
    """
    rows = np.flatnonzero(room)
    fresh = load == 0
    order = rows[np.lexsort((rows, -room[rows], fresh[rows], rivals[rows]))].tolist()
    shares: Shares = []
    left = pods
    for number, row in enumerate(order):
        if left <= room.item(row):
            alike = [row for row in order[number:] if room.item(row) >= left]
            first = (rivals.item(row), fresh.item(row))
            enough = [row for row in alike if (rivals.item(row), fresh.item(row)) == first]
            return [*shares, (min(enough, key=lambda row: (room.item(row), row)), left)] if left else shares
        shares.append((row, room.item(row)))
        left -= room.item(row)
    return shares


def widest(room: Ints, pods: int, load: Ints) -> Shares:
    """As many nodes as can be, one pod after the other on the node with fewest pods of the gang, then with most room."""
    heap = [(load.item(row), -room.item(row), row) for row in np.flatnonzero(room).tolist()]
    heapq.heapify(heap)
    shares: dict[int, int] = {}
    for _ in range(pods):
        if not heap:
            break
        held, left, row = heap[0]
        shares[row] = shares.get(row, 0) + 1
        if left + 1:
            heapq.heapreplace(heap, (held + 1, left + 1, row))
        else:
            heapq.heappop(heap)
    return sorted(shares.items())
