"""Statements of source text, without the expressions in them: four fifths of a syntax tree are no statements."""

import ast
from collections.abc import Iterator


def statements(text: str) -> Iterator[ast.stmt]:
    """Yields the statements of a module, as `within` finds them.

    Raises:
        SyntaxError: the text is no Python.
    """
    return within(ast.parse(text))


def within(node: ast.AST) -> Iterator[ast.stmt]:
    """Yields the statements within another or a module, in order: classes, functions and imports wherever they stand."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from within(child)
