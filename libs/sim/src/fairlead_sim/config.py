"""The parts of a simulated cluster: nodes, queues and the accounts through which jobs enter."""

from pathlib import Path
from typing import Literal

import msgspec
import yaml

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import parse_quantity
from fairlead_contracts.base.yaml_text import YamlError, read_yaml
from fairlead_sim.errors import ConfigError
from fairlead_sim.lines import QueueStrategy


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A misspelled key is an error, not a silent default."""


class NodeGroup(_Strict, frozen=True, kw_only=True):
    """Equal nodes of a pool, named `<name>-0`, `<name>-1` and so on."""

    name: str
    count: int
    allocatable: dict[str, int | float | str]
    """Of one node, in Kubernetes notation: `{nvidia.com/gpu: 8, cpu: 64, memory: 512Gi}`."""
    pool: str = "gpu"
    labels: dict[str, str] = {}

    def amounts(self) -> dict[str, int]:
        """The capacity of one node, in base units."""
        return {
            resource: parse_quantity(resource, value, field=f"nodes.{self.name}.{resource}")
            for resource, value in self.allocatable.items()
        }


class QueueConfig(_Strict, frozen=True, kw_only=True):
    """A queue of a pool. Several queues may share one pool's capacity."""

    name: str
    pool: str = "gpu"
    strategy: QueueStrategy = "best-effort"
    default_level: int = 0
    lowest_level: int = 1
    highest_level: int = 1_000_000


class ClusterConfig(_Strict, frozen=True, kw_only=True):
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


NODE: dict[str, int | float | str] = {"nvidia.com/gpu": 8, "cpu": 64, "memory": "512Gi"}
"""One node of the default cluster and of the demo's: eight cards, eight cores and 64 GiB for each of them."""

DEFAULT = ClusterConfig(
    nodes=[NodeGroup(name="node", count=4, allocatable=NODE)],
    queues=[QueueConfig(name="main")],
    accounts={"team-a": "main", "team-b": "main", "team-c": "main"},
)
"""A small cluster for a laptop: 32 cards and three teams."""


def read_config(found: object) -> ClusterConfig:
    """The configuration in plain values, as a YAML parser gives them.

    Raises:
        ConfigError: a key is unknown, a value has the wrong type, or names do not fit together.
    """
    try:
        config = msgspec.convert(found, ClusterConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the cluster's configuration: {error}") from error
    problems = _problems(config)
    if problems:
        raise ConfigError("the cluster's configuration: " + "; ".join(problems))
    return config


def load_cluster(path: str | None) -> ClusterConfig:
    """The cluster's configuration from a YAML file, or the default one.

    Raises:
        ConfigError: the file cannot be read, or what it says does not fit together.
    """
    if path is None:
        return DEFAULT
    try:
        found: object = read_yaml(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, YamlError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return read_config(found)


def render_config(config: ClusterConfig) -> str:
    """The configuration as YAML, as the service's `cluster_file` takes it."""
    plain: object = msgspec.to_builtins(config)
    rendered: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    return rendered


def _problems(config: ClusterConfig) -> list[str]:
    queues = [queue.name for queue in config.queues]
    return [
        *_twice("node group", [group.name for group in config.nodes]),
        *_twice("queue", queues),
        *(problem for group in config.nodes for problem in _group_problems(group)),
        *(
            f"account {scope!r} enters queue {queue!r}, which does not exist"
            for scope, queue in config.accounts.items()
            if queue not in queues
        ),
        *(
            f"queue {queue.name!r}: levels {queue.lowest_level} to {queue.highest_level} must be a band above its "
            f"default level {queue.default_level}"
            for queue in config.queues
            if not queue.default_level < queue.lowest_level <= queue.highest_level
        ),
        *("a name may not be empty" for name in (*queues, *config.accounts, *config.pools()) if not name),
    ]


def _twice(what: str, names: list[str]) -> list[str]:
    return [f"{what} {name!r} is named twice" for name in sorted({n for n in names if names.count(n) > 1})]


def _group_problems(group: NodeGroup) -> list[str]:
    problems = [f"node group {group.name!r} has {group.count} nodes"] if group.count < 0 else []
    try:
        group.amounts()
    except FieldError as error:
        problems.append(str(error))
    return problems
