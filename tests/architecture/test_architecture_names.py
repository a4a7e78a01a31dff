"""One class name means one thing: a name that stands in two modules needs a reason, and there are few of them."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]

SAME_PORT = "each member's own view of one thing, with one shape: no member may import it from the other"
OTHER_SYSTEM = "the word of Kubernetes, Kueue, Slurm or NATS for its thing, and ours for what is made of it"
PRIVATE = "private to its module"
WIRE = "a message, and what it is made from or read into"

SHARED = {
    SAME_PORT: [
        "Audience",
        "Instruments",
        "Sources",
        "Surroundings",
        "Mirror",
        "Store",
        "StoreError",
        "PodUse",
    ],
    OTHER_SYSTEM: [
        *["Follower", "Node", "NotFoundError", "Output", "RefusedError", "Taint", "Toleration", "Workload"],
    ],
    WIRE: ["Asked", "Ended", "Holder", "Room", "Run"],
    PRIVATE: ["_File", "_Found", "_Group", "_Reader", "_Silent", "_Unread"],
}
"""Names that classes of several modules have, by the reason why they may. A new class takes a name that says which."""


def class_names() -> dict[str, list[str]]:
    """Where each class of the product stands, by its name."""
    found = defaultdict[str, list[str]](list)
    for path in sorted(path for top in ("libs", "services") for path in (ROOT / top).glob("*/src/**/*.py")):
        if "fairlead_testkit" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_a_class_name_means_one_thing() -> None:
    allowed = {name for names in SHARED.values() for name in names}
    twice = {name: places for name, places in class_names().items() if len(places) > 1}
    new = {name: places for name, places in twice.items() if name not in allowed}
    assert not new, "call the newer one by what it is"
    assert allowed <= twice.keys(), "these stand once by now: they need no reason"
