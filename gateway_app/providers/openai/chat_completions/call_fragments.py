"""The calls of a chat answer, put together from fragments that servers number in different ways."""

from typing import Any

import orjson

from gateway_app.providers.openai.answer import is_json_object


class ChatCalls:
    """The calls of one answer, in the order in which they began."""

    def __init__(self) -> None:
        self.calls: list[ChatCall] = []

    @property
    def has_nameless(self) -> bool:
        return any(not call.call_id for call in self.calls)

    def begin(self, index: Any) -> "ChatCall":
        call = ChatCall(index)
        self.calls.append(call)
        return call

    def find(self, index: Any, given_id: str, name: str, arguments: str) -> "ChatCall | None":
        """The call that a fragment belongs to; None if it begins another one."""
        found = self._with_id(given_id, index, name)
        if found is None:
            found = self.newest_at(index)
        if found is None or found.is_followed_by(given_id, name, arguments):
            return None
        return found

    def _with_id(self, given_id: str, index: Any, name: str) -> "ChatCall | None":
        """A name at another index is that of another call, which the server gave the same id."""
        if not given_id:
            return None
        for call in self.calls:
            if call.given_id == given_id and not (name and call.has_other_index(index)):
                return call
        return None

    def newest_at(self, index: Any) -> "ChatCall | None":
        for call in reversed(self.calls):
            if not call.has_other_index(index):
                return call
        return None


class ChatCall:
    """A call whose fragments are still coming; it starts once its name is known."""

    def __init__(self, index: Any) -> None:
        self.index = index  # None where the server sends none
        self.given_id = ""
        self.call_id = ""
        self.name = ""
        self.waiting = ""  # arguments that came before the name
        self.received: list[str] = []  # all arguments
        self.extras: dict[str, Any] = {}  # that were not passed on yet

    @property
    def is_complete(self) -> bool:
        # Without the first test, a server that sends the name each time would cost quadratic time.
        return self.received[-1].endswith("}") and is_json_object("".join(self.received))

    def has_other_index(self, index: Any) -> bool:
        return index is not None and self.index is not None and index != self.index

    def is_repeated_by(self, given_id: str, arguments: str) -> bool:
        """Some relays send a whole call again at the end."""
        return bool(given_id and self.is_complete and arguments == "".join(self.received))

    def is_followed_by(self, given_id: str, name: str, arguments: str) -> bool:
        """Does a fragment with this call's id or index belong to the next call?

        Some servers give every call the index 0, none or the same id. Then another id begins
        another call, or a name after a complete call. Others give every fragment an id of its own.
        """
        if not self.call_id:
            return False
        if given_id and self.given_id and given_id != self.given_id:
            return bool(name) or self.is_complete
        if not name:
            return False
        if given_id and given_id == self.given_id:
            is_repeated = self.is_repeated_by(given_id, arguments)
            return bool(arguments) and self.is_complete and not is_repeated
        return name != self.name or self.is_complete


def free_text(arguments: str) -> str:
    """The input of a custom tool; a model that wrote no JSON object meant its text as it is."""
    if not is_json_object(arguments):
        return arguments
    text = orjson.loads(arguments).get("input")
    if isinstance(text, str):
        return text
    return arguments


def arguments_text(given: Any) -> str:
    if isinstance(given, str):
        return given
    if given:
        return orjson.dumps(given).decode()
    return ""
