"""What is wrong with a request for one model, where another may take it."""

from dataclasses import dataclass
from enum import StrEnum


class ModelFault(StrEnum):
    """Why this model refuses a request that another one may answer."""

    QUOTA = "quota"
    AUTHENTICATION = "authentication"
    UNKNOWN_MODEL = "unknown model"
    CONTEXT_OVERFLOW = "context overflow"


@dataclass(frozen=True, slots=True)
class ContextOverflow:
    """The request does not fit; the numbers are in the upstream's tokens, where it sends them."""

    tokens: int | None = None  # of the request
    window: int | None = None
