"""Cards in snapshots: what containers ask of them, and pools that count otherwise; written and read again the same."""

import pytest

from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot
from fairlead_contracts.snapshot.write import encode_snapshot

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"


def plain(containers: list[dict[str, object]], name: str = "pods") -> dict[str, object]:
    shape = {"name": name, "pods": 2, "per_pod": {"cpu": 1, GPU: 2}, "containers": containers}
    return {
        "now": 2,
        "pools": [{"name": "p", "capacity": {"cpu": 8, GPU: 80}, "card_shares": False}],
        "nodes": [{"name": "n", "allocatable": {"cpu": 8}, "cards": [{"uuid": "GPU-1", "memory": 16384}]}],
        "tenants": [{"name": "a"}],
        "jobs": [
            {
                "id": "j",
                "tenant": "a",
                "submitted": 1,
                "demand": {"cpu": 2, GPU: 4},
                "frontend": "kueue",
                "gang": {"shapes": [shape]},
            }
        ],
    }


@pytest.mark.parametrize("name", ["pods", "workers"])
def test_what_containers_ask_is_read_as_it_is_written(name: str) -> None:
    found = read_snapshot(plain([{GPU: 1, MEMORY: 8000}, {GPU: 1}], name))
    [job] = found.jobs
    assert job.gang is not None
    assert job.gang.shapes[0].containers == [{GPU: 1000, MEMORY: 8_000_000}, {GPU: 1000}]
    assert not found.pools[0].card_shares
    assert decode_snapshot(encode_snapshot(found)) == found


def test_containers_speak_of_cards_alone() -> None:
    with pytest.raises(DocumentError) as caught:
        read_snapshot(plain([{GPU: 1, "cpu": 1}, {GPU: "many"}]))
    assert [problem.field for problem in caught.value.problems] == [
        "jobs[0].gang.shapes[0].containers[0].cpu",
        "jobs[0].gang.shapes[0].containers[1].nvidia.com/gpu",
    ]
