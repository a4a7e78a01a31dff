"""YAML as people write it, without what PyYAML takes badly or passes over.

A text is looked over first (see `yaml_survey`): nesting and aliases within bounds, numbers that mean what they look
like. A key written twice, of which the last one would win, is refused before values are made.
"""

from typing import Final

import yaml

from fairlead_cli.yaml_survey import survey

_LOADER: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str | bytes) -> object:
    """What a document says; None where it is empty.

    Raises:
        YAMLError: it is not YAML, is out of the bounds of `yaml_survey`, or a mapping has a key twice: YAML 1.2,
            3.2.1.1, has its keys unique.
    """
    _survey(text)
    loader = _LOADER(text)
    try:
        return _made(loader, loader.get_single_node())
    finally:
        loader.dispose()


def read_yaml_documents(text: str | bytes) -> list[object]:
    """What each document of a text says; None for an empty one.

    Raises:
        YAMLError: as `read_yaml`.
    """
    _survey(text)
    loader = _LOADER(text)
    found = []
    try:
        while loader.check_node():
            found.append(_made(loader, loader.get_node()))
    finally:
        loader.dispose()
    return found


def _survey(text: str | bytes) -> None:
    loader = _LOADER(text)
    try:
        survey(loader)
    finally:
        loader.dispose()


def _made(loader: yaml.SafeLoader, root: yaml.Node | None) -> object:
    if root is None:
        return None
    _refuse_twice(root)
    try:
        found: object = loader.construct_document(root)
    except ValueError as error:  # such as a day that no month has, or more digits than Python reads
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error
    return found


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
