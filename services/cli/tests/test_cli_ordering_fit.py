"""`fairlead order` with nodes in view: gangs and fractions of cards, placed or told why not."""

import json
from pathlib import Path

from fairlead_testkit.processes.command import fairlead

GPU, MEM, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
NOW = 1_760_000_000
REGISTER = "hami.io/node-nvidia-register"
T4 = [
    {
        "id": f"GPU-t4-{number}",
        "count": 10,
        "devmem": 15360,
        "devcore": 100,
        "type": "Tesla T4",
        "health": True,
    }
    for number in range(2)
]
A30 = "".join(
    f"GPU-a30-{number},10,24576,100,NVIDIA-NVIDIA A30,0,true,{number},hami-core:" for number in range(2)
)
HELD = "GPU-a30-0,NVIDIA,12000,30:;GPU-a30-1,NVIDIA,12000,50:;"
SNAPSHOT: dict[str, object] = {
    "now": NOW,
    "policy": {"aging": {"entitlement_per_day": 4.32}, "window": 2, "fit": {"strategy": "binpack"}},
    "pools": [{"name": "gpu", "capacity": {"cpu": 160, "memory": "640Gi", GPU: 4}}],
    "tenants": [{"name": "team-1", "weight": 2}, {"name": "team-2"}],
    "nodes": [
        {
            "name": "a30-node",
            "allocatable": {"cpu": 64, "memory": "256Gi", GPU: 20, "pods": 110},
            "labels": {"gpu": "a30"},
            "used": {"cpu": 4, "memory": "16Gi", GPU: 2, "pods": 9},
            "annotations": {REGISTER: A30},
            "pods": [{"name": "serving", "annotations": {"hami.io/vgpu-devices-allocated": HELD}}],
        },
        {
            "name": "t4-node",
            "allocatable": {"cpu": 64, "memory": "256Gi", GPU: 20, "pods": 110},
            "used": {},
            "annotations": {REGISTER: json.dumps(T4)},
        },
        {"name": "cpu-node", "allocatable": {"cpu": 32, "memory": "128Gi"}, "used": {}, "taints": ["spot:NoSchedule"]},
    ],
    "running": [
        {"id": "serving", "tenant": "team-1", "demand": {"cpu": 4, "memory": "16Gi", GPU: 2, MEM: 12000, CORES: 40}}
    ],
    "jobs": [
        {"id": "notebook", "tenant": "team-2", "submitted": NOW - 900, "demand": {"cpu": 2, GPU: 1, MEM: 8000, CORES: 30}},
        {"id": "train", "tenant": "team-2", "submitted": NOW - 800, "demand": {"cpu": 8, GPU: 1, MEM: 16000}},
        {
            "id": "gang",
            "tenant": "team-2",
            "submitted": NOW - 700,
            "demand": {"cpu": 8, GPU: 2},
            "gang": {"pods": 2, "per_pod": {"cpu": 4, GPU: 1}},
            "annotations": {"nvidia.com/use-gputype": "t4"},
        },
        {"id": "huge", "tenant": "team-2", "submitted": NOW - 600, "demand": {"memory": "512Gi"}, "level": 0},
        {
            "id": "h100",
            "tenant": "team-2",
            "submitted": NOW - 500,
            "demand": {"cpu": 4},
            "gang": {"pods": 4, "per_pod": {"cpu": 1}, "selector": {"gpu": "h100"}},
        },
        {"id": "late", "tenant": "team-2", "submitted": NOW - 400, "demand": {"cpu": 140}, "gang": {"pods": 140}},
    ],
}  # fmt: skip


def test_json_says_of_each_job_where_it_fits_or_why_not() -> None:
    ended = fairlead("order", "-", "-o", "json", "--levels", given=json.dumps(SNAPSHOT))
    assert ended.returncode == 0, ended.stderr
    [pool] = json.loads(ended.stdout)["pools"]
    fits = {job["id"]: job["fit"] for job in pool["order"]}
    assert fits["notebook"] == {
        "answer": "placed",
        "nodes": [{"node": "a30-node", "pods": 1, "cards": {"GPU-a30-0": 1}}],
    }
    assert fits["train"]["answer"] == "no-room"
    assert fits["train"]["why"][0].endswith("no card has 16000 MiB; the most on one is 15360 MiB.")
    assert fits["gang"]["nodes"] == [{"node": "t4-node", "pods": 2, "cards": {"GPU-t4-0": 1, "GPU-t4-1": 1}}]
    assert fits["huge"]["answer"] == "never"
    assert fits["huge"]["why"] == [
        "pods: a pod asks for 512Gi memory, more than any node has, even empty (256Gi).",
        "pods: taint spot:NoSchedule is not tolerated, on 1 node.",
    ]
    assert fits["huge"]["obstacles"][0]["type"] == "NodeShort"
    assert fits["h100"]["why"] == ["pods: no node has the label gpu=h100."]
    assert fits["late"]["why"][:2] == [
        "pods: 128 of 140 pods fit.",
        "pods ask for 140 cpu together; 128 free in all.",
    ]
    labelled = {write["id"] for write in pool["writes"] if write["level"] > 0}
    assert not labelled & {"huge", "h100"}


def test_the_table_says_it_in_a_column_and_below() -> None:
    ended = fairlead("order", "-", given=json.dumps(SNAPSHOT))
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[1].split()[9:11] == ["fit", "waited"]
    cells = {line.split()[1]: line for line in lines[2:8]}
    assert "a30-node" in cells["notebook"]
    assert "never" in cells["huge"]
    assert "  h100: can never run as things are. pods: no node has the label gpu=h100." in lines
    assert any(line.startswith("  train: pods: ") and "but no card has 16000 MiB" in line for line in lines)


def test_fractions_weigh_their_part_of_the_cards_in_the_order() -> None:
    [pool] = json.loads(fairlead("order", "-", "-o", "json", given=json.dumps(SNAPSHOT)).stdout)["pools"]
    train = next(job for job in pool["order"] if job["id"] == "train")
    # The notebook's 8000 MiB of 79872 weigh more than its 30 % of 400 %, and a place of 10 on one of 4 cards.
    assert train["tag"] == 3 * 8000 / 79872
    assert train["dominant"] == MEM


def test_one_job_is_explained_with_where_it_fits() -> None:
    text = json.dumps(SNAPSHOT)
    assert (
        "Its pods fit: 2 on t4-node (GPU-t4-0, GPU-t4-1)."
        in fairlead("order", "-", "--explain", "gang", given=text).stdout
    )
    words = fairlead("order", "-", "--explain", "h100", given=text).stdout
    assert (
        words.count("On the nodes: can never run as things are. pods: no node has the label gpu=h100.") == 1
    )
    assert ": no node of its cluster can hold it, even empty" in words
    assert "it fits now" not in words
    words = fairlead("order", "-", "--explain", "train", given=text).stdout
    assert "no card has 16000 MiB" in words
    assert "it fits now" not in words
    found = json.loads(fairlead("order", "-", "--explain", "gang", "-o", "json", given=text).stdout)
    assert found["fits"]["gang"]["answer"] == "placed"


def test_a_register_that_cannot_be_read_is_refused_with_its_node(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    nodes = [{"name": "a30-node", "allocatable": {}, "annotations": {REGISTER: "GPU-1,10"}}]
    path.write_text(json.dumps(SNAPSHOT | {"nodes": nodes}))
    ended = fairlead("order", str(path))
    assert ended.returncode != 0
    assert f"{path} does not validate" in ended.stderr
    assert f"nodes[0].annotations.{REGISTER}" in ended.stderr
    assert "node 'a30-node'" in ended.stderr


def test_without_a_strategy_nothing_is_placed() -> None:
    policy = {"fit": {"strategy": "none"}}
    ended = fairlead("order", "-", "-o", "json", given=json.dumps(SNAPSHOT | {"policy": policy}))
    [pool] = json.loads(ended.stdout)["pools"]
    placed = ["fit" in job for job in pool["order"]]
    assert placed
    assert not any(placed)
