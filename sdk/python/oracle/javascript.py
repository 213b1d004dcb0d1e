"""The code of nodes in JavaScript, for the cases that the TypeScript SDK plays.

It is the code that ``node_bodies``, ``edges`` and ``failures`` draw, and no other: anything else is refused.
"""

from __future__ import annotations

import ast
import json
from typing import Any

_COMPARED = {ast.Eq: "===", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_MADE = {"Send", "Overwrite", "Boom", "Other", "ValueError", "KeyError", "TypeError"}
"""Classes whose objects are made with the arguments in their order."""
_AWAITED = {"sleep": "sleep", "asleep": "asleep", "call_sub": "callSub"}
_CALLED = {"interrupt": "interrupt", "write": "write", "str": "str", "sorted": "keys"}


def translate_node(code: str) -> str:
    """The body of a function of ``state``, and of ``error`` in an error handler."""
    return _block(ast.parse(_as_function(code)).body[0].body)  # type: ignore[attr-defined]


def translate_route(code: str) -> str:
    """The body of a function that returns what the expression of a conditional edge is."""
    return f"return {_Expression().visit(ast.parse(code, mode='eval').body)}"


def bodies_of(graphs: list[dict[str, Any]]) -> dict[str, str]:
    """The JavaScript of all code of a case, by that code."""
    found: dict[str, str] = {}
    for graph in graphs:
        handlers = [options.get("error_handler") for options in graph.get("node_options", {}).values()]
        handlers.append(graph.get("node_defaults", {}).get("error_handler"))
        nodes = [code for code in graph["nodes"].values() if not code.startswith("<subgraph ")]
        found |= {code: translate_node(code) for code in [*nodes, *handlers] if code}
        found |= {b["path"]: translate_route(b["path"]) for b in graph.get("conditional_edges", [])}
    return found


def _as_function(code: str) -> str:
    lines = "\n".join(f"    {line}" for line in code.split("\n"))
    return f"async def node(state, error):\n{lines}"


def _block(statements: list[ast.stmt]) -> str:
    return "\n".join(f"{_statement(one)};" for one in statements)


def _statement(node: ast.stmt) -> str:
    said = _Expression().visit
    match node:
        case ast.Return(value=None) | ast.Pass():
            return "return"
        case ast.Return(value=value):
            return f"return {said(value)}"
        case ast.Raise(exc=error):
            return f"throw {said(error)}"
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return f"const {name} = {said(value)}"
        case ast.Assign(targets=[target], value=value):
            return f"{said(target)} = {said(value)}"
        case ast.If(test=test, body=body, orelse=[]):
            return f"if (truthy({said(test)})) {{\n{_block(body)}\n}}"
        case ast.Expr(value=value):
            return str(said(value))
    raise ValueError(f"no JavaScript for {ast.unparse(node)}")


class _Expression(ast.NodeVisitor):
    """Writes an expression."""

    def generic_visit(self, node: ast.AST) -> str:
        raise ValueError(f"no JavaScript for {ast.unparse(node)}")

    def visit_Constant(self, node: ast.Constant) -> str:
        return json.dumps(node.value)

    def visit_Name(self, node: ast.Name) -> str:
        return "Command.PARENT" if node.id == "PARENT" else node.id

    def visit_Attribute(self, node: ast.Attribute) -> str:
        return f"{self.visit(node.value)}.{node.attr}"

    def visit_List(self, node: ast.List) -> str:
        return f"[{', '.join(self.visit(item) for item in node.elts)}]"

    def visit_Tuple(self, node: ast.Tuple) -> str:
        return f"[{', '.join(self.visit(item) for item in node.elts)}]"

    def visit_Dict(self, node: ast.Dict) -> str:
        items = [f"{self.visit(key)}: {self.visit(value)}" for key, value in zip(node.keys, node.values, strict=True)]
        return f"{{ {', '.join(items)} }}" if items else "{}"

    def visit_Subscript(self, node: ast.Subscript) -> str:
        if isinstance(node.value, (ast.List, ast.Dict)):  # of an empty one: it fails
            return f"fail('{'IndexError' if isinstance(node.value, ast.List) else 'KeyError'}')"
        return f"at({self.visit(node.value)}, {self.visit(node.slice)})"  # of a key that is not there: it fails

    def visit_Await(self, node: ast.Await) -> str:
        return str(self.visit(node.value))

    def visit_IfExp(self, node: ast.IfExp) -> str:
        return f"(truthy({self.visit(node.test)}) ? {self.visit(node.body)} : {self.visit(node.orelse)})"

    def visit_Compare(self, node: ast.Compare) -> str:
        [operator], [right] = node.ops, node.comparators
        if isinstance(operator, ast.In):
            return f"({self.visit(node.left)} in {self.visit(right)})"
        return f"({self.visit(node.left)} {_COMPARED[type(operator)]} {self.visit(right)})"

    def visit_BinOp(self, node: ast.BinOp) -> str:
        left, right = node.left, node.right
        if isinstance(node.op, ast.FloorDiv):  # by zero
            return "fail('ZeroDivisionError')"
        if isinstance(node.op, ast.Mod) and isinstance(left, ast.Constant) and isinstance(left.value, str):
            return self._format(left.value, right)
        if isinstance(node.op, ast.Mod):
            return f"({self.visit(left)} % {self.visit(right)})"
        if isinstance(node.op, ast.Add) and isinstance(right, ast.List):
            return f"[...{self.visit(left)}, ...{self.visit(right)}]"
        if isinstance(node.op, ast.Add):
            return f"({self.visit(left)} + {self.visit(right)})"
        return self.generic_visit(node)

    def _format(self, text: str, value: ast.expr) -> str:
        before, after = text.replace("%d", "%s").split("%s")
        return f"({json.dumps(before)} + str({self.visit(value)}) + {json.dumps(after)})"

    def visit_ListComp(self, node: ast.ListComp) -> str:
        match node.generators:
            case [
                ast.comprehension(
                    target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[count]), ifs=[]
                )
            ]:
                return f"Array.from({{ length: {self.visit(count)} }}, (_, {name}) => {self.visit(node.elt)})"
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> str:
        given = ", ".join(self.visit(argument) for argument in node.args)
        match node.func:
            case ast.Attribute(value=of, attr="get"):
                return f"{self.visit(of)}[{given}]"
            case ast.Name(id="len"):
                return f"{given}.length"
            case ast.Name(id="Command"):
                fields = ", ".join(f"{one.arg}: {self.visit(one.value)}" for one in node.keywords)
                return f"new Command({{ {fields} }})"
            case ast.Name(id="KeyError"):
                return f"new KeyError(str([{given}]).slice(1, -1))"  # its text is that of the key
            case ast.Name(id=name) if name in _MADE:
                return f"new {name}({given})"
            case ast.Name(id=name) if name in _AWAITED:
                return f"(await {_AWAITED[name]}({given}))"
            case ast.Name(id=name) if name in _CALLED:
                return f"{_CALLED[name]}({given})"
        return self.generic_visit(node)
