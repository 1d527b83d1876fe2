"""Medians and percentiles."""

from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def describe(name: str, values: Sequence[float]) -> dict[str, float]:
    """The middle and the end of a distribution of milliseconds; nothing of an empty one."""
    if not values:
        return {}
    return {
        f"{name}_p50_ms": percentile(values, 0.5),
        f"{name}_p99_ms": percentile(values, 0.99),
        f"{name}_max_ms": max(values),
    }
