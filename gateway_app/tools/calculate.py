"""Arithmetic on plain numbers."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from gateway_app.agent.tools import Tool, ToolContext

Number = int | float
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
MAX_EXPRESSION_CHARS = 500


async def calculate(arguments: dict[str, Any], context: ToolContext) -> str:
    expression = arguments.get("expression")
    if not isinstance(expression, str) or len(expression) > MAX_EXPRESSION_CHARS:
        raise ValueError(
            f"expression must be a string of at most {MAX_EXPRESSION_CHARS} characters"
        )
    return f"{_value(ast.parse(expression.strip(), mode='eval').body):.12g}"


def _value(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError("only numbers, + - * / and brackets are understood")


TOOL = Tool(
    name="calculate",
    description=(
        "Evaluate an arithmetic expression of numbers, + - * / and brackets. Use it for every sum "
        "that must be right; for anything more, such as statistics, run a program in the terminal."
    ),
    parameters={
        "type": "object",
        "properties": {"expression": {"type": "string"}},
        "required": ["expression"],
        "additionalProperties": False,
    },
    run=calculate,
    is_replay_safe=True,
    is_read_only=True,
)
