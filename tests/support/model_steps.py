"""What a model's server can do: the steps of a script."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

USAGE = {"input": 11, "output": 7, "cached": 3, "written": 2, "reasoned": 5}


@dataclass(frozen=True)
class Output:
    text: str


class Text(Output): ...


class Thought(Output): ...


class Refusal(Output): ...


@dataclass(frozen=True)
class Call:
    call_id: str
    name: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Begun:
    """A call that is announced and never finished."""

    call: Call


@dataclass(frozen=True)
class Gate:
    opened: threading.Event


@dataclass(frozen=True)
class Raw:
    data: bytes


@dataclass(frozen=True)
class Finish:
    reason: str = "stop"
    usage: dict[str, int] = field(default_factory=lambda: dict(USAGE))


@dataclass(frozen=True)
class Answer:
    """Not a stream: a status and a body."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamStyle:
    """The form of the steps behind it; as the first step, also whether there is an opening event."""

    has_opening: bool = True
    rotates_ids: bool = False
    has_output: bool = True  # in the terminal event


@dataclass(frozen=True)
class Dripped:
    """The frames of a step in HTTP chunks of one byte."""

    step: "Step"


class Cut: ...  # the connection ends in the middle of the body


class Reset: ...  # the connection is torn down


class Leave: ...  # the server is gone: connections are refused


class Pings: ...  # comments for ever, as a proxy sends them to keep a connection open


Step = Output | Calls | Begun | Gate | Raw | Finish | Answer | StreamStyle | Dripped | Cut | Reset | Leave | Pings
HELLO: tuple[Step, ...] = (Text("Hello "), Text("wörld 🎉"), Finish())
