"""The doctor on nodes whose cards HAMi registers: what it gives of them is in no node's allocatable."""

import json

import msgspec

from fairlead_cli.kueue.doctor.checks import examine
from fairlead_cli.kueue.doctor.kueue_config import KueueRelease, KueueSeen
from fairlead_cli.kueue.doctor.survey import Survey
from fairlead_contracts.frontend.cards import CARD_CORES, CARD_MEMORY, REGISTER
from fairlead_contracts.policyfile.read import read_document
from fairlead_kube.core import Node
from fairlead_kube.lever import Lever, LeverProbe
from fairlead_kube.queues import ClusterQueue, ResourceFlavor
from fairlead_testkit.kubelab import GPU, NodeShape, things

LABEL = {"cards": "hami"}
MIB = 24_576
CARD = {"count": 10, "devmem": MIB, "devcore": 100, "type": "NVIDIA-A30", "mode": "hami-core", "health": True}


def told(register: str, **quota: int) -> list[str]:
    """What is said of quotas above what nodes have, on one node with this register."""
    [node] = NodeShape("hami", 1, gpus=20, labels=LABEL).nodes()
    node["metadata"]["annotations"] = {REGISTER: register}
    amounts = {GPU: 20, CARD_MEMORY: quota["memory"], CARD_CORES: quota["cores"]}
    queue = things.cluster_queue("cards", amounts, flavor="hami")
    survey = Survey(
        cluster="lab",
        kueue=KueueSeen(served=("v1beta2",), release=KueueRelease(0, 19, 2)),
        policy=read_document({"unlisted_weight": 1}),
        probe=LeverProbe(Lever.BOOST, "the webhook reads boosts"),
        cluster_queues=msgspec.convert([queue], list[ClusterQueue]),
        flavors=msgspec.convert([things.flavor("hami", LABEL)], list[ResourceFlavor]),
        nodes=msgspec.convert([node], list[Node]),
    )
    return [finding.what for finding in examine(survey) if finding.name == "quota-above-capacity"]


def test_parts_of_cards_are_what_hami_registers() -> None:
    two = json.dumps([{"id": f"GPU-{number}", **CARD} for number in (1, 2)])
    assert told(two, memory=2 * MIB, cores=200) == []
    assert told(two, memory=2 * MIB + 1, cores=200) == [
        f"{CARD_MEMORY}: quota 49153, and its nodes have 49152 allocatable"
    ]


def test_of_a_register_that_cannot_be_read_nothing_is_given() -> None:
    said = told("GPU-1,ten,24576", memory=MIB, cores=100)
    assert said == [
        f"{CARD_CORES}: quota 100, and its nodes have 0 allocatable",
        f"{CARD_MEMORY}: quota 24576, and its nodes have 0 allocatable",
    ]
