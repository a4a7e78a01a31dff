"""YAML as people write it, with one mistake that PyYAML passes over: a key written twice, of which the last one wins."""

from typing import Final

import yaml

_LOADER: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str | bytes) -> object:
    """What a document says; None where it is empty.

    Raises:
        YAMLError: it is not YAML, or a mapping has a key twice: YAML 1.2, 3.2.1.1, has its keys unique.
    """
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        _refuse_twice(root)
        found: object = loader.construct_document(root)
        return found
    finally:
        loader.dispose()


def _refuse_twice(root: yaml.Node) -> None:
    """Before merge keys are put in place: what they bring may be written over."""
    seen = {id(root)}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        parts: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            parts = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            parts = node.value
        # An alias is the node that it stands for.
        fresh = [part for part in parts if not isinstance(part, yaml.ScalarNode) and id(part) not in seen]
        seen.update(map(id, fresh))
        waiting += fresh


def _check_keys(mapping: yaml.MappingNode) -> None:
    lines: dict[tuple[str, str], int] = {}
    for key, _ in mapping.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        line = key.start_mark.line + 1
        if first := lines.get((key.tag, key.value)):
            raise yaml.YAMLError(f"key {key.value!r} in line {line} is given in line {first} already")
        lines[key.tag, key.value] = line
