"""Calls that broke off before they were whole: how many, and what the model gets to know of each."""

MAX_DROPS = 4
SPLIT_AFTER_DROPS = 2  # of the same tool: the call would be too long the next time too

DROPPED = "Your call of `{tool}` was cut off before its arguments were complete, so it was not run."
RESEND = " Make the call again if it is still needed."
SPLIT = (
    " It keeps being cut off: do not send the same call again. "
    "Split the content over several smaller calls, or use several `patch` calls, "
    "and keep the arguments of each call under about 8,000 tokens."
)


class DroppedCalls:
    """Those of one round."""

    def __init__(self) -> None:
        self.count = 0
        self._in_a_row = 0
        self._last_tool = ""

    @property
    def are_too_many(self) -> bool:
        return self.count >= MAX_DROPS

    def add(self, tool: str) -> str:
        """The note to the model."""
        if tool != self._last_tool:
            self._in_a_row = 0
        self.count += 1
        self._in_a_row += 1
        self._last_tool = tool
        note = DROPPED.format(tool=tool)
        if self._in_a_row >= SPLIT_AFTER_DROPS:
            return note + SPLIT
        return note + RESEND
