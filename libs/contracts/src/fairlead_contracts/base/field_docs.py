"""Docstrings under the fields of a class: one text serves the code's reader, `--help` and schemas."""

import ast
import inspect
import textwrap
from itertools import pairwise


def field_docs(kind: type) -> dict[str, str]:
    """The docstring under each of the class's own fields, in one line.

    None in a frozen build without sources: what shows them has names and defaults alone then.
    """
    try:
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):
        return {}
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    docs: dict[str, str] = {}
    for field, text in pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                docs[name] = " ".join(doc.split())
    return docs
