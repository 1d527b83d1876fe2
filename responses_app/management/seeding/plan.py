"""Which sessions there are, of which kind, and when their turns came."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count

from responses_app.management.seeding.templates import Template
from responses_app.models import Kind

OWNERS = 8
# Kinds of sessions and how frequent each is. The turns of a conversation are of kind "responses".
SESSION_KINDS = {
    Kind.RESPONSES: 40,
    Kind.CHAT: 35,
    "conversation": 12,
    Kind.RUNS: 8,
    Kind.SESSION_CHAT: 5,
}
TURNS = (1, 2, 3, 5, 8, 20)  # of a session, and how frequent each length is
TURN_WEIGHTS = (40, 20, 15, 14, 9, 2)
BETWEEN_TURNS_SECS = (20, 900)


@dataclass(frozen=True)
class PlannedTurn:
    hex_id: str
    template: Template
    created_at: datetime
    is_stored: bool


@dataclass(frozen=True)
class PlannedSession:
    number: int
    owner: int
    public_id: str
    kind: str
    turns: list[PlannedTurn]

    @property
    def is_conversation(self) -> bool:
        return self.kind == "conversation"

    @property
    def turn_kind(self) -> str:
        if self.is_conversation:
            return Kind.RESPONSES
        return self.kind

    @property
    def has_server_history(self) -> bool:
        """The clients of chat completions bring their history themselves."""
        return self.kind != Kind.CHAT


def plan_sessions(
    source: random.Random, templates: list[Template], responses: int, end: datetime, days: int
) -> Iterator[PlannedSession]:
    """Sessions with as many turns in all, spread over the days before ``end``."""
    planned = 0
    for number in count():
        if planned == responses:
            return
        turns = min(source.choices(TURNS, TURN_WEIGHTS)[0], responses - planned)
        planned += turns
        kind = source.choices(list(SESSION_KINDS), list(SESSION_KINDS.values()))[0]
        at = end - timedelta(seconds=source.uniform(0, days * 86_400))
        yield PlannedSession(
            number=number,
            owner=min(int(source.expovariate(0.5)), OWNERS - 1),
            public_id=f"sess_{source.getrandbits(96):024x}",
            kind=str(kind),
            turns=list(_turns(source, templates, turns, at, end)),
        )


def _turns(
    source: random.Random, templates: list[Template], turns: int, at: datetime, end: datetime
) -> Iterator[PlannedTurn]:
    for _ in range(turns):
        template = source.choice(templates)
        # An unstored turn is alone: no other turn can continue it.
        is_stored = turns > 1 or source.random() > 0.03
        yield PlannedTurn(f"{source.getrandbits(128):032x}", template, at, is_stored)
        pause = timedelta(seconds=source.uniform(*BETWEEN_TURNS_SECS))
        at = min(at + template.total + pause, end - template.total)
