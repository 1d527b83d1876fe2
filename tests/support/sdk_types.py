"""Values of the types of OpenAI's SDK: each literal, each kind of object and each field at least once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Required, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

PLAIN: dict[Any, Any] = {str: "x", int: 1, float: 1.0, bool: True, object: {}}


def is_required(hint: Any) -> bool:
    origin: Any = get_origin(hint)
    return origin is Required


@dataclass(frozen=True)
class Sample:
    """A value, and the path and the literal in it that no other sample of its type has."""

    value: Any
    path: tuple[str | int, ...] = ()
    literal: Any = None

    def inside(self, step: str | int, value: Any) -> "Sample":
        return Sample(value, (step, *self.path), self.literal)

    @property
    def field(self) -> str:
        """The name of the field that holds the literal."""
        names = [step for step in self.path if isinstance(step, str)]
        return names[-1] if names else ""

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))} = {self.literal!r}"


class Walk:
    """Gives samples of types; ``texts`` are the values of fields that are no free text."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        self._texts = texts
        self._open: list[Any] = []  # types that contain themselves are entered once

    def samples(self, kind: Any, name: str = "") -> list[Sample]:
        """The first one is the smallest value of the type."""
        if name in self._texts and kind in (str, int):
            return [Sample(self._texts[name])]
        if kind in PLAIN:
            return [Sample(PLAIN[kind])]
        if get_origin(kind) is Literal:
            return [Sample(literal, literal=literal) for literal in get_args(kind)]
        if get_origin(kind) in (Union, UnionType):
            return self._of_union(kind, name)
        if is_typeddict(kind):
            return list(self._of_object(kind))
        if get_origin(kind) is dict:
            return [Sample({})]
        if is_required(kind):
            return self.samples(get_args(kind)[0], name)
        if get_args(kind):
            inner = self.samples(get_args(kind)[0], name)
            return [sample.inside(0, [sample.value]) for sample in inner]
        raise TypeError(f"There is no sample of {kind!r} ({name}).")

    def _of_union(self, kind: Any, name: str) -> list[Sample]:
        found: list[Sample] = []
        for member in get_args(kind):
            if member is not NoneType:
                found += self.samples(member, name)
        return found

    def _of_object(self, kind: Any) -> Iterator[Sample]:
        if kind in self._open:
            return
        self._open.append(kind)
        hints = get_type_hints(kind, include_extras=True)
        fields = {name: self.samples(hint, name) for name, hint in hints.items()}
        self._open.pop()
        required = [name for name, hint in hints.items() if is_required(hint)]
        smallest = {name: fields[name][0].value for name in required if fields[name]}
        yield Sample(smallest, ("type",), smallest.get("type"))
        for name, samples in fields.items():
            for sample in samples:
                yield sample.inside(name, smallest | {name: sample.value})
