"""Small pictures of curves, with logarithmic axes: on those, what grows with its size is a straight line."""

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 170, 16, 34
COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea")
GREY = "#808080"
Points = Sequence[tuple[float, float]]


def svg(curves: Mapping[str, Points], unit: str) -> str:
    """One curve per name; values of zero are not drawn."""
    drawn = {name: [point for point in points if point[1] > 0] for name, points in curves.items()}
    xs = [x for points in drawn.values() for x, _ in points]
    ys = [y for points in drawn.values() for _, y in points]
    x_axis = Axis(xs, LEFT, WIDTH - RIGHT)
    y_axis = Axis(ys, HEIGHT - BOTTOM, TOP)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {box}>']
    parts += _grid(x_axis, y_axis, unit)
    for number, (name, points) in enumerate(drawn.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x_axis.at(x):.1f},{y_axis.at(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = TOP + 12 + 18 * number
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{y}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


class Axis:
    """From values to pixels, over whole powers of ten."""

    def __init__(self, values: Sequence[float], first_pixel: float, last_pixel: float) -> None:
        self.low = math.floor(math.log10(min(values, default=1)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values, default=10))))
        self._first, self._last = first_pixel, last_pixel

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self._first + share * (self._last - self._first)

    @property
    def powers(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def _grid(x_axis: Axis, y_axis: Axis, unit: str) -> list[str]:
    parts = []
    for value in y_axis.powers:
        y = y_axis.at(value)
        parts.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{GREY}" stroke-opacity="0.3"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="{GREY}">{value:,.10g}</text>')
    for value in x_axis.powers:
        x = x_axis.at(value)
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" fill="{GREY}">{value:,.10g}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle" fill="{GREY}">{unit}</text>')
    return parts
