"""Arithmetic on plain numbers."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from gateway_app.agent.tools import Tool, ToolContext

Number = int | float
MAX_EXPRESSION_CHARS = 500
MAX_BITS = 4096  # of a whole number: 9**9**9 would take hours and gigabytes
TOO_LARGE = "the result or a part of it is too large"


def _power(base: Any, exponent: Any) -> Any:
    is_whole = isinstance(base, int) and isinstance(exponent, int)
    if is_whole and exponent > 0 and base.bit_length() * exponent > MAX_BITS:
        if base not in (-1, 0, 1):
            raise ValueError(TOO_LARGE)
        exponent = 2 - exponent % 2  # of these, only the parity of the exponent counts
    return base**exponent


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}


async def calculate(arguments: dict[str, Any], context: ToolContext) -> str:
    expression = arguments.get("expression")
    if not isinstance(expression, str) or len(expression) > MAX_EXPRESSION_CHARS:
        raise ValueError(
            f"expression must be a string of at most {MAX_EXPRESSION_CHARS} characters"
        )
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except OverflowError as error:
        raise ValueError(TOO_LARGE) from error
    if isinstance(value, int):
        return str(value)
    return f"{value:.12g}"


def _value(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _checked(_BINARY[type(node.op)](_value(node.left), _value(node.right)))
    raise ValueError("only numbers, + - * / % ** and brackets are understood")


def _checked(result: Any) -> Number:
    if isinstance(result, complex):
        raise ValueError("the result is not a real number")
    if isinstance(result, int) and result.bit_length() > MAX_BITS:
        raise ValueError(TOO_LARGE)
    number: Number = result
    return number


TOOL = Tool(
    name="calculate",
    description=(
        "Evaluate an arithmetic expression of numbers, + - * / % (remainder) ** (power) and "
        "brackets. Use it for every sum that must be right; for anything more, such as statistics, "
        "run a program in the terminal."
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
