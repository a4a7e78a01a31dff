"""The parts of a simulated cluster: nodes, queues and the accounts through which jobs enter."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.places import not_utf8
from fairlead_contracts.base.quantities import parse_quantity
from fairlead_contracts.base.reading import Strict, StructReader, no_mapping, with_unread
from fairlead_contracts.base.yaml_text import YamlError, parse_yaml, with_places, write_yaml
from fairlead_contracts.policyfile.read import names_of
from fairlead_sim.errors import ConfigError
from fairlead_sim.lines import QueueStrategy


class NodeGroup(Strict, frozen=True, kw_only=True):
    """Equal nodes of a pool, named `<name>-0`, `<name>-1` and so on."""

    name: str
    count: int
    allocatable: dict[str, int | float | str]
    """Amounts of one node, in Kubernetes notation: `{nvidia.com/gpu: 8, cpu: 64, memory: 512Gi}`."""
    pool: str = "gpu"
    labels: dict[str, str] = {}

    def amounts(self) -> dict[str, int]:
        """The capacity of one node, in base units."""
        return {
            resource: parse_quantity(resource, value, field=f"nodes.{self.name}.{resource}")
            for resource, value in self.allocatable.items()
        }


class QueueConfig(Strict, frozen=True, kw_only=True):
    """A queue of a pool. Several queues may share one pool's capacity."""

    name: str
    pool: str = "gpu"
    strategy: QueueStrategy = "best-effort"
    default_level: int = 0
    lowest_level: int = 1
    highest_level: int = 1_000_000


class ClusterConfig(Strict, frozen=True, kw_only=True):
    """A whole simulated cluster."""

    version: Literal[1] = 1
    nodes: list[NodeGroup]
    queues: list[QueueConfig]
    accounts: dict[str, str]
    """Scope (namespace or account) to the queue that its jobs enter."""

    def pools(self) -> list[str]:
        """Names of all pools, in the order in which nodes and queues name them."""
        return list(
            dict.fromkeys([*(group.pool for group in self.nodes), *(queue.pool for queue in self.queues)])
        )

    def capacity(self, pool: str) -> dict[str, int]:
        """The capacity of all nodes of a pool together, in base units."""
        capacity: dict[str, int] = {}
        for group in self.nodes:
            if group.pool == pool:
                for resource, amount in group.amounts().items():
                    capacity[resource] = capacity.get(resource, 0) + amount * group.count
        return capacity


NODE: dict[str, int | float | str] = {"nvidia.com/gpu": 8, "cpu": 64, "memory": "512Gi"}
"""Amounts of each node of the default cluster and of the demo's: eight cards, eight cores and 64 GiB for each
of them."""

DEFAULT = ClusterConfig(
    nodes=[NodeGroup(name="node", count=4, allocatable=NODE)],
    queues=[QueueConfig(name="main")],
    accounts={"team-a": "main", "team-b": "main", "team-c": "main"},
)
"""A small cluster for a laptop: 32 cards and three teams."""


def load_cluster(path: str | None) -> ClusterConfig:
    """The cluster's configuration from a YAML file, or the default one.

    Raises:
        ConfigError: the file cannot be read, or what it says does not fit together; with every problem and its line.
    """
    if path is None:
        return DEFAULT
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: {not_utf8(error)}") from error
    try:
        parsed = parse_yaml(text)
        found = parsed.only
    except YamlError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    config, problems = _read(found, parsed.problems)
    if config is None or problems:
        raise ConfigError(f"{path} is not a valid cluster", with_places(problems, text))
    return config


def render_config(config: ClusterConfig) -> str:
    """The configuration as YAML, as the service's `cluster_file` takes it."""
    return write_yaml(msgspec.to_builtins(config))


def _read(found: object, unread: Collection[FieldError]) -> tuple[ClusterConfig | None, list[FieldError]]:
    """The configuration as far as it can be read, and every problem; `unread` are those of the parser."""
    if not isinstance(found, dict):
        return None, [*unread, no_mapping("document", found)]
    reader = StructReader()
    config = reader.struct(ClusterConfig, found, "")
    if config is not None:
        # A queue that could not be read is still one: whoever names it made no mistake.
        reader.problems += _problems(config, reader.kept, names_of(found.get("queues")))
    return config, with_unread(unread, reader.problems)


def _problems(
    config: ClusterConfig, kept: Mapping[str, Sequence[int]], queues: Collection[str]
) -> Iterator[FieldError]:
    nodes = dict(zip((f"nodes[{number}]" for number in kept.get("nodes", ())), config.nodes, strict=False))
    stated = dict(
        zip((f"queues[{number}]" for number in kept.get("queues", ())), config.queues, strict=False)
    )
    yield from _twice("node group", {where: group.name for where, group in nodes.items()})
    yield from _twice("queue", {where: queue.name for where, queue in stated.items()})
    for where, group in nodes.items():
        yield from _group_problems(where, group)
    for scope, queue in config.accounts.items():
        if queue not in queues:
            yield FieldError(f"accounts.{scope}", queue, f"is not a queue here{_meant(queue, queues)}")
    for where, one in stated.items():
        if not one.default_level < one.lowest_level <= one.highest_level:
            band = f"levels {one.lowest_level} to {one.highest_level}"
            reason = f"{band} must be a band above its default level {one.default_level}"
            yield FieldError(where, msgspec.UNSET, reason)
    yield from _empty(nodes, stated, config.accounts)


def _empty(
    nodes: Mapping[str, NodeGroup], queues: Mapping[str, QueueConfig], accounts: Collection[str]
) -> Iterator[FieldError]:
    named = {
        **{f"{where}.pool": group.pool for where, group in nodes.items()},
        **{f"{where}.name": queue.name for where, queue in queues.items()},
        **{f"{where}.pool": queue.pool for where, queue in queues.items()},
        'accounts.""': "" if "" in accounts else "named",
    }
    yield from (FieldError(where, name, "may not be empty") for where, name in named.items() if not name)


def _meant(queue: str, queues: Collection[str]) -> str:
    near = get_close_matches(queue, queues, 1)
    meant = f": did you mean {near[0]}? Queues are" if near else "; queues are"
    return f"{meant} {', '.join(sorted(queues)) or '(none)'}"


def _twice(what: str, names: Mapping[str, str]) -> Iterator[FieldError]:
    first: dict[str, str] = {}
    for where, name in names.items():
        if name in first:
            yield FieldError(f"{where}.name", name, f"names a {what} twice: {first[name]} has this name")
        first.setdefault(name, where)


def _group_problems(where: str, group: NodeGroup) -> Iterator[FieldError]:
    if group.count < 0:
        yield FieldError(f"{where}.count", group.count, "must be a whole number from 0")
    for resource, value in group.allocatable.items():
        try:
            parse_quantity(resource, value, field=f"{where}.allocatable.{resource}")
        except FieldError as error:
            yield error
