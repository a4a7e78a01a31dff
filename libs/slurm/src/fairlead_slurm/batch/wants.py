"""Amounts of each resource that a script asks for, of one node and of all. Pure."""

import math
from collections.abc import Mapping

import msgspec

from fairlead_slurm.batch.options import BatchOption
from fairlead_slurm.batch.values import count, fewest_nodes, gpus, gres, memory

_MIB = 1024**2

type Given = Mapping[str, BatchOption]
"""The options of one part of a job by name; of an option that is given several times the last."""


class BatchWant(msgspec.Struct, frozen=True):
    """An amount of one resource, of one node or of all, and the script's line that asks for it."""

    resource: str
    """Name of the resource: `cpu`, `mem`, or a GRES by name and type."""
    amount: int
    """Amount: processors, bytes, or a count."""
    line: int


def of_all_nodes(given: Given) -> list[BatchWant]:
    """The amounts that all nodes together have to have."""
    wants = [
        BatchWant(name, amount, given["gpus"].line) for name, amount in gpus(value_of(given, "gpus")).items()
    ]
    if "gpus-per-task" in given:
        each = gpus(given["gpus-per-task"].value)
        tasks = count(value_of(given, "ntasks"))
        wants += [
            BatchWant(name, amount * tasks, given["gpus-per-task"].line) for name, amount in each.items()
        ]
    if "overcommit" not in given and "ntasks" in given:
        cpus = count(given["ntasks"].value) * count(value_of(given, "cpus-per-task"))
        wants.append(BatchWant("cpu", cpus, given["ntasks"].line))
    return wants


def of_a_node(given: Given, nodes: int) -> list[BatchWant]:
    """The least amounts that some node has to have."""
    each = count(value_of(given, "cpus-per-task"))
    stated = value_of(given, "nodes")
    is_exact = stated.isdecimal() and stated != "0"  # else tasks may spread over more nodes
    spread = math.ceil(count(value_of(given, "ntasks")) / nodes) if is_exact else 1
    tasks = 1 if "overcommit" in given else max(count(value_of(given, "ntasks-per-node")), spread)
    cpus = each * tasks
    wants = [BatchWant("cpu", cpus, line_of(given, "cpus-per-task", "ntasks-per-node", "ntasks"))]
    if "mem" in given:
        wants.append(BatchWant("mem", memory(given["mem"].value), given["mem"].line))
    elif "mem-per-cpu" in given:
        amount = memory(given["mem-per-cpu"].value) * cpus
        wants.append(BatchWant("mem", amount, given["mem-per-cpu"].line))
    counted = gres(value_of(given, "gres")) | gpus(value_of(given, "gpus-per-node"))
    line = line_of(given, "gpus-per-node", "gres")
    return wants + [BatchWant(name, amount, line) for name, amount in counted.items()]


def of_the_job(given: Given) -> list[BatchWant]:
    """The least amounts of the whole running job, named as in Slurm's limits: `node`, `gres/gpu:h100`."""
    nodes = fewest_nodes(value_of(given, "nodes"))
    if "ntasks" in given:
        nodes = min(nodes, count(given["ntasks"].value))  # sbatch asks for no more nodes than tasks
    found: dict[str, BatchWant] = {"node": BatchWant("node", nodes, line_of(given, "nodes"))}
    per_node = ((want, nodes) for want in of_a_node(given, nodes))
    for want, times in (*per_node, *((want, 1) for want in of_all_nodes(given))):
        for name in _limit_names(want.resource):
            amount = want.amount * times
            if name not in found or amount > found[name].amount:
                found[name] = BatchWant(name, amount, want.line)
    return list(found.values())


def of_each_node(given: Given) -> list[BatchWant]:
    """The least amounts that some node gives to the job, by the names of Slurm's limits."""
    wants = of_a_node(given, fewest_nodes(value_of(given, "nodes")))
    return [BatchWant(name, want.amount, want.line) for want in wants for name in _limit_names(want.resource)]


def value_of(given: Given, name: str) -> str:
    """The value of an option; empty where it is not given."""
    return given[name].value if name in given else ""


def line_of(given: Given, *names: str) -> int:
    """The line of the first of these options that is given; 0 where none is."""
    return next((given[name].line for name in names if name in given), 0)


def amount_in_words(resource: str, amount: int) -> str:
    """An amount as a remark tells it: `4 CPUs`, `512 MiB of memory`."""
    if resource == "mem":
        return f"{amount // _MIB} MiB of memory"
    return f"{amount} {'CPUs' if resource == 'cpu' else resource}"


def _limit_names(resource: str) -> tuple[str, ...]:
    if resource in ("cpu", "mem"):
        return (resource,)
    return tuple(dict.fromkeys((f"gres/{resource.partition(':')[0]}", f"gres/{resource}")))
