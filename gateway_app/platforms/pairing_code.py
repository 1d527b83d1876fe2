"""Pairing codes as pictures: lines of a terminal, and the path of an SVG image."""

from gateway_app.platforms.qr_code import Modules, qr_modules

QUIET_ZONE = 4  # light modules around a code, without which cameras do not find it
# Light is bright: terminals are dark.
_HALVES = {(False, False): "█", (False, True): "▀", (True, False): "▄", (True, True): " "}


def terminal_lines(text: str) -> list[str]:
    """Two rows of modules in one line of half blocks, light on dark, as cameras read it."""
    modules = with_quiet_zone(qr_modules(text))
    if len(modules) % 2:
        modules.append([False] * len(modules))
    lines = []
    for upper, lower in zip(modules[::2], modules[1::2], strict=True):
        pairs = zip(upper, lower, strict=True)
        lines.append("".join(_HALVES[pair] for pair in pairs))
    return lines


def svg_path(text: str) -> tuple[str, int]:
    """The dark modules as the path of an SVG image, and the side of that image."""
    modules = with_quiet_zone(qr_modules(text))
    steps = []
    for y, row in enumerate(modules):
        for x, is_dark in enumerate(row):
            if is_dark:
                steps.append(f"M{x} {y}h1v1h-1z")
    return "".join(steps), len(modules)


def with_quiet_zone(modules: Modules) -> Modules:
    side = len(modules) + 2 * QUIET_ZONE
    framed = [[False] * side for _ in range(QUIET_ZONE)]
    for row in modules:
        framed.append([False] * QUIET_ZONE + row + [False] * QUIET_ZONE)
    return framed + [[False] * side for _ in range(QUIET_ZONE)]
