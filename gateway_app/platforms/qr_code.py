"""QR codes by ISO/IEC 18004: bytes, the lowest error correction, the mask with the least penalty.

Written here: pairing is the only use, and a library would be one more dependency for it.
"""

from collections.abc import Iterator
from itertools import pairwise

Modules = list[list[bool]]  # True is dark

MAX_VERSION = 20  # 858 bytes; a pairing code has about 240
# For the error correction level L, by version: codewords of correction in a block, and blocks.
# fmt: off
CORRECTION = (7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28)
BLOCKS = (1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8)
# fmt: on
BYTE_MODE = 0b0100
LEVEL_L = 0b01
FORMAT_MASK = 0b101010000010010
FORMAT_GENERATOR = 0b10100110111
VERSION_GENERATOR = 0b1111100100101
FINDER_LIKE = ([1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1])

MASKS = range(8)


class TooLong(ValueError):
    pass


def qr_modules(text: str) -> Modules:
    data = text.encode()
    version = _version_for(len(data))
    codewords = _interleaved(_data_codewords(data, version), version)
    symbol = _Symbol(version)
    symbol.place(codewords)
    return min(map(symbol.masked, MASKS), key=_penalty)


# -- codewords --------------------------------------------------------------------------
def _version_for(size: int) -> int:
    for version in range(1, MAX_VERSION + 1):
        if 4 + _count_bits(version) + 8 * size <= 8 * _data_capacity(version):
            return version
    raise TooLong(f"A QR code here takes at most 858 bytes, not {size}.")


def _count_bits(version: int) -> int:
    if version < 10:
        return 8
    return 16


def _raw_codewords(version: int) -> int:
    modules = (16 * version + 128) * version + 64
    if version >= 2:
        aligned = version // 7 + 2
        modules -= (25 * aligned - 10) * aligned - 55
    if version >= 7:
        modules -= 36
    return modules // 8


def _data_capacity(version: int) -> int:
    return _raw_codewords(version) - CORRECTION[version - 1] * BLOCKS[version - 1]


def _data_codewords(data: bytes, version: int) -> bytes:
    bits = f"{BYTE_MODE:04b}{len(data):0{_count_bits(version)}b}"
    bits += "".join(f"{byte:08b}" for byte in data)
    capacity = _data_capacity(version)
    bits += "0" * min(4, 8 * capacity - len(bits))
    bits += "0" * (-len(bits) % 8)
    found = [int(bits[start : start + 8], 2) for start in range(0, len(bits), 8)]
    padding = (0xEC, 0x11)
    while len(found) < capacity:
        found.append(padding[(len(found) - len(bits) // 8) % 2])
    return bytes(found)


def _interleaved(data: bytes, version: int) -> bytes:
    """One codeword of each block in turn: first of the data, then of the correction."""
    count = BLOCKS[version - 1]
    short = len(data) // count
    longer = len(data) % count  # the last blocks have one codeword more
    generator = _generator(CORRECTION[version - 1])
    blocks, corrections, start = [], [], 0
    for number in range(count):
        size = short + (number >= count - longer)
        blocks.append(data[start : start + size])
        corrections.append(_remainder(blocks[-1], generator))
        start += size
    found = bytearray()
    for parts in (blocks, corrections):
        for index in range(max(len(part) for part in parts)):
            found += bytes(part[index] for part in parts if index < len(part))
    return bytes(found)


def _multiply(left: int, right: int) -> int:
    """In the field of 256 elements that QR codes use."""
    product = 0
    for bit in range(7, -1, -1):
        product = (product << 1) ^ ((product >> 7) * 0x11D)
        product ^= ((right >> bit) & 1) * left
    return product


def _generator(degree: int) -> list[int]:
    found = [0] * (degree - 1) + [1]
    root = 1
    for _ in range(degree):
        for index in range(degree):
            found[index] = _multiply(found[index], root)
            if index + 1 < degree:
                found[index] ^= found[index + 1]
        root = _multiply(root, 2)
    return found


def _remainder(data: bytes, generator: list[int]) -> bytes:
    found = [0] * len(generator)
    for byte in data:
        factor = byte ^ found.pop(0)
        found.append(0)
        for index, coefficient in enumerate(generator):
            found[index] ^= _multiply(coefficient, factor)
    return bytes(found)


# -- modules ----------------------------------------------------------------------------
class _Symbol:
    def __init__(self, version: int) -> None:
        self.version = version
        self.side = 17 + 4 * version
        self.modules: Modules = [[False] * self.side for _ in range(self.side)]
        self.is_fixed: Modules = [[False] * self.side for _ in range(self.side)]
        self._place_patterns()

    def _fix(self, x: int, y: int, is_dark: bool) -> None:
        self.modules[y][x] = is_dark
        self.is_fixed[y][x] = True

    def _place_patterns(self) -> None:
        for index in range(self.side):
            self._fix(index, 6, index % 2 == 0)
            self._fix(6, index, index % 2 == 0)
        for x, y in ((3, 3), (self.side - 4, 3), (3, self.side - 4)):
            self._place_square(x, y, 4, light_rings=(2, 4))
        positions = _alignment_positions(self.version, self.side)
        last = len(positions) - 1
        for row, y in enumerate(positions):
            for column, x in enumerate(positions):
                if (row, column) not in ((0, 0), (0, last), (last, 0)):
                    self._place_square(x, y, 2, light_rings=(1,))
        self._place_format(self.modules, 0)
        if self.version >= 7:
            self._place_version()

    def _place_square(self, x: int, y: int, radius: int, light_rings: tuple[int, ...]) -> None:
        for dy in range(-radius, radius + 1):
            for dx in range(-radius, radius + 1):
                if 0 <= x + dx < self.side and 0 <= y + dy < self.side:
                    self._fix(x + dx, y + dy, max(abs(dx), abs(dy)) not in light_rings)

    def _place_format(self, modules: Modules, mask: int) -> None:
        bits = _with_remainder(LEVEL_L << 3 | mask, 10, FORMAT_GENERATOR) ^ FORMAT_MASK
        for index, (x, y) in enumerate(self._format_cells()):
            modules[y][x] = bool(bits >> (index % 15) & 1)
            self.is_fixed[y][x] = True
        modules[self.side - 8][8] = True
        self.is_fixed[self.side - 8][8] = True

    def _format_cells(self) -> Iterator[tuple[int, int]]:
        """Both copies, from the lowest bit to the highest."""
        for y in (0, 1, 2, 3, 4, 5, 7, 8):
            yield 8, y
        for x in (7, 5, 4, 3, 2, 1, 0):
            yield x, 8
        for distance in range(8):
            yield self.side - 1 - distance, 8
        for distance in range(7, 0, -1):
            yield 8, self.side - distance

    def _place_version(self) -> None:
        bits = _with_remainder(self.version, 12, VERSION_GENERATOR)
        for index in range(18):
            far, near = self.side - 11 + index % 3, index // 3
            self._fix(far, near, bool(bits >> index & 1))
            self._fix(near, far, bool(bits >> index & 1))

    def place(self, codewords: bytes) -> None:
        bits = "".join(f"{codeword:08b}" for codeword in codewords)
        for bit, (x, y) in zip(bits, self._data_cells(), strict=False):  # a few cells stay light
            self.modules[y][x] = bit == "1"

    def _data_cells(self) -> Iterator[tuple[int, int]]:
        """In pairs of columns from the right, up and down in turn, past the timing column."""
        is_upward = True
        for right in [*range(self.side - 1, 6, -2), *range(5, 0, -2)]:
            rows = range(self.side)
            for y in reversed(rows) if is_upward else rows:
                for x in (right, right - 1):
                    if not self.is_fixed[y][x]:
                        yield x, y
            is_upward = not is_upward

    def masked(self, mask: int) -> Modules:
        found = [row.copy() for row in self.modules]
        for y in range(self.side):
            for x in range(self.side):
                found[y][x] ^= not self.is_fixed[y][x] and _is_inverted(mask, x, y)
        self._place_format(found, mask)
        return found


def _is_inverted(mask: int, x: int, y: int) -> bool:
    match mask:
        case 0:
            return (x + y) % 2 == 0
        case 1:
            return y % 2 == 0
        case 2:
            return x % 3 == 0
        case 3:
            return (x + y) % 3 == 0
        case 4:
            return (x // 3 + y // 2) % 2 == 0
        case 5:
            return x * y % 2 + x * y % 3 == 0
        case 6:
            return (x * y % 2 + x * y % 3) % 2 == 0
        case _:
            return ((x + y) % 2 + x * y % 3) % 2 == 0


def _alignment_positions(version: int, side: int) -> list[int]:
    if version == 1:
        return []
    count = version // 7 + 2
    step = (version * 8 + count * 3 + 5) // (count * 4 - 4) * 2
    return [6, *reversed([side - 7 - index * step for index in range(count - 1)])]


def _with_remainder(value: int, bits: int, generator: int) -> int:
    """A value with the bits of its BCH code behind it."""
    remainder = value
    for _ in range(bits):
        remainder = (remainder << 1) ^ ((remainder >> (bits - 1)) * generator)
    return value << bits | remainder


def _penalty(modules: Modules) -> int:
    columns = [list(column) for column in zip(*modules, strict=True)]
    score = sum(_line_penalty(line) for line in (*modules, *columns))
    for upper, lower in pairwise(modules):
        for x in range(len(upper) - 1):
            score += 3 * (upper[x] == upper[x + 1] == lower[x] == lower[x + 1])
    dark = sum(map(sum, modules))
    percent = 100 * dark / len(modules) ** 2
    return score + 10 * int(abs(percent - 50) / 5)


def _line_penalty(line: list[bool]) -> int:
    score, length = 0, 1
    for before, current in zip(line, [*line[1:], None], strict=True):
        if before == current:
            length += 1
            continue
        if length >= 5:
            score += length - 2
        length = 1
    for start in range(len(line) - 10):
        score += 40 * (line[start : start + 11] in FINDER_LIKE)
    return score
