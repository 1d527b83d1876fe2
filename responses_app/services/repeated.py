"""Find the turn up to which a request repeats what is stored."""

from responses_app.fold import Item
from responses_app.models import Response
from responses_app.services.context_hash import EMPTY, may_end_a_turn, running_hashes
from responses_app.services.history import deleted_before

LOOK_BACK = 50  # ends of turns to try, newest first: a client repeats everything but its last few items


def find_repeated(owner_id: int, items: list[Item]) -> tuple[Response | None, int]:
    """The newest turn that the first items repeat, and how many items that is."""
    counts = {
        hashed: index + 1
        for index, hashed in enumerate(running_hashes(EMPTY, items[:-1]))
        if may_end_a_turn(items[index])
    }
    newest = list(counts)[-LOOK_BACK:]
    if not newest:
        return None, 0
    visible = Response.objects.visible_to(owner_id).filter(deleted_at__isnull=True, context_hash__in=newest)
    found = visible.select_related("session").order_by("created_at")
    best = max(found, key=lambda response: counts[response.context_hash], default=None)
    if best is None or deleted_before(best):  # a deleted turn in between is no longer here to point at
        return None, 0
    return best, counts[best.context_hash]
