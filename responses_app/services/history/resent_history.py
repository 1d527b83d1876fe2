"""Find the turn up to which a request repeats what is stored."""

from dataclasses import dataclass

from responses_app.models import Response
from responses_app.models.responses import ResponseQuerySet
from responses_app.protocol.snapshot import Item
from responses_app.services.history.chain_values import deleted_before
from responses_app.services.history.context_hash import EMPTY, may_end_a_turn, running_hashes
from responses_app.services.lifecycle.read_ahead import ReadAhead

LOOK_BACK = (
    50  # ends of turns to try, newest first: a client repeats everything but its last few items
)


@dataclass(frozen=True)
class Repeated:
    """The newest turn that a request repeats, with how many items, and whether only what was said in it."""

    last: Response
    items: int
    is_spoken: bool


def possible_ends(items: list[Item]) -> dict[str, int]:
    """Hashes behind the newest items that can end a repeated history, with how many items it has."""
    counts = {
        hashed: index + 1
        for index, hashed in enumerate(running_hashes(EMPTY, items[:-1]))
        # Reasoning alone has the hash of an empty history.
        if hashed != EMPTY and may_end_a_turn(items[index])
    }
    newest = list(counts)[-LOOK_BACK:]
    return {hashed: counts[hashed] for hashed in newest}


def find_repeated(owner_id: int, ends: dict[str, int], reads: ReadAhead) -> Repeated | None:
    if not ends:
        return None
    visible = Response.objects.visible_to(owner_id).filter(deleted_at__isnull=True)
    longest = max(_known(visible, list(ends)), key=lambda match: ends[match[1]], default=None)
    if longest is None:
        return None
    field, hashed = longest
    found = (
        visible.filter(**{field: hashed}).select_related("session").order_by("-created_at").first()
    )
    if found is None or deleted_before(found, reads):
        return None  # a deleted turn in between is no longer here to point at
    return Repeated(found, ends[hashed], field == "spoken_hash")


def _known(visible: ResponseQuerySet, hashes: list[str]) -> list[tuple[str, str]]:
    """Which of these hashes a stored turn has, and under which name; the exact one comes first."""
    return [
        (field, hashed)
        for field in ("context_hash", "spoken_hash")
        for hashed in visible.filter(**{f"{field}__in": hashes})
        .values_list(field, flat=True)
        .distinct()
    ]
