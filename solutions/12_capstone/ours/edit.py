"""Our own steps: each file here holds what it puts in the place of functions
of the same name, and what these need."""

import ast


def edited(text: str, new: str) -> str:
    """The script with the functions of `new` in place of its own."""
    found = {node.name: node for node in ast.parse(text).body
             if isinstance(node, ast.FunctionDef)}
    parts = [(node, source(new, node)) for node in ast.parse(new).body[1:]]
    taken = [(found[node.name], code) for node, code in parts
             if getattr(node, "name", "") in found]
    others = [code for node, code in parts
              if getattr(node, "name", "") not in found]
    for old, code in taken:
        text = text.replace(source(text, old), code)
    first = source(text, taken[0][0]) if not others else taken[0][1]
    return text.replace(first, "\n\n".join([*others, "\n" + first]), 1)


def source(text: str, node: ast.stmt) -> str:
    """The lines of a statement, with its decorators."""
    above = getattr(node, "decorator_list", [])
    first = min(part.lineno for part in (node, *above))
    return "\n".join(text.splitlines()[first - 1:node.end_lineno])
