"""calculate: exact on whole numbers, and never for long."""

from pathlib import Path

import pytest

from gateway_app.agent.tools import ToolContext
from gateway_app.tools.calculate import calculate

HERE = ToolContext(Path(), print)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2**10", "1024"),
        ("2**64 + 1", "18446744073709551617"),
        ("2**-1", "0.5"),
        ("2**0.5", "1.41421356237"),
        ("-2**2", "-4"),
        ("17 % 5", "2"),
        ("-7 % 3", "2"),
        ("7.5 % 2", "1.5"),
        ("(-1)**99999999999", "-1"),
        ("0**5000", "0"),
        ("20+1", "21"),
        ("1/4", "0.25"),
    ],
)
async def test_it_knows_powers_and_remainders(expression: str, result: str) -> None:
    assert await calculate({"expression": expression}, HERE) == result


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("9**9**9", "too large"),
        ("(10**1000)*(10**1000)", "too large"),
        ("10.0**400", "too large"),
        ("10**1000 / 3.0", "too large"),
        ("(-8)**0.5", "not a real number"),
        ("5 % 0", "by zero|modulo"),
        ("7 // 2", "understood"),
    ],
)
async def test_what_would_take_forever_or_has_no_result_is_an_error(expression: str, reason: str) -> None:
    with pytest.raises((ValueError, ZeroDivisionError), match=reason):
        await calculate({"expression": expression}, HERE)
