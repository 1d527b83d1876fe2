"""What the turns of a long history cost in the database."""

from tests.support.server import Server
from tests.support.stored_rows import until_merged

TURNS = 40  # a cost that grows with each turn is eight times that of the fifth


def stored_bytes(server: Server, response_id: str) -> int:
    """What one turn costs in its rows: request, input, output and log."""
    sql = (
        "SELECT length(CAST(r.request AS text)) + length(CAST(r.output AS text)) "
        "+ (SELECT coalesce(sum(length(CAST(i.item AS text))), 0)"
        "   FROM responses_app_inputitem i WHERE i.response_id = r.id) "
        "+ (SELECT coalesce(sum(length(s.frames)), 0)"
        "   FROM responses_app_eventsegment s WHERE s.response_id = r.id) "
        "FROM responses_app_response r WHERE r.id = ?"
    )
    return int(server.query(sql, response_id)[0][0])


def assert_turns_cost_the_same(server: Server, ids: list[str]) -> None:
    both = (ids[4], ids[-1])
    for response_id in both:
        until_merged(server, response_id)
    early, late = (stored_bytes(server, one) for one in both)
    assert abs(late - early) <= early * 0.2, (early, late)
