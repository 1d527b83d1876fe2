"""Lists: pages that neither repeat nor miss anything, for their owner alone."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth import get_user_model
from django.test import RequestFactory
from django.utils import timezone
from rest_framework.request import Request

from responses_app.api.pagination import IdPagination
from responses_app.models import Response, Session
from responses_app.protocol.status import OnDisconnect, Status
from tests.support.errors import assert_error
from tests.support.people import create_key
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)


@pytest.fixture(scope="module")
def lister(server: Server) -> str:
    return create_key(server, "lister")


@pytest.fixture(scope="module")
def passer_by(server: Server) -> str:
    return create_key(server, "passer-by")


@pytest.fixture(scope="module")
def made(server: Server, lister: str) -> list[str]:
    """Seven responses of one owner, oldest first."""
    client = server.openai(lister)
    header = {"X-Hermes-Session-Id": "listed"}
    ids = [client.responses.create(input=f"number {n}").id for n in range(5)]
    return ids + [client.responses.create(input=f"session {n}", extra_headers=header).id for n in range(2)]


def listed(server: Server, key: str, path: str = "/v1/responses", **params: Any) -> dict[str, Any]:
    with server.http(key) as client:
        answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(page: dict[str, Any]) -> list[str]:
    assert page["object"] == "list"
    found = [one["id"] for one in page["data"]]
    assert (page["first_id"], page["last_id"]) == ((found[0], found[-1]) if found else (None, None))
    return found


def walk(server: Server, key: str, path: str = "/v1/responses", **params: Any) -> list[str]:
    found: list[str] = []
    page = listed(server, key, path, **params)
    found += ids(page)
    while page["has_more"]:
        page = listed(server, key, path, **params, after=page["last_id"])
        found += ids(page)
    return found


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
def test_pages_cover_the_list_in_both_orders(server: Server, lister: str, made: list[str], limit: int) -> None:
    assert walk(server, lister, limit=limit) == made[::-1]
    assert walk(server, lister, limit=limit, order="asc") == made


def test_a_list_shows_each_response_as_it_is_read_alone(server: Server, lister: str, made: list[str]) -> None:
    with server.http(lister) as client:
        alone = [client.get(f"/v1/responses/{response_id}").json() for response_id in made]
    assert listed(server, lister, order="asc")["data"] == alone


def test_before_gives_the_elements_directly_in_front(server: Server, lister: str, made: list[str]) -> None:
    page = listed(server, lister, order="asc", before=made[4], limit=2)
    assert (ids(page), page["has_more"]) == (made[2:4], True)
    page = listed(server, lister, before=made[4], limit=2)
    assert (ids(page), page["has_more"]) == ([made[6], made[5]], False)
    between = listed(server, lister, order="asc", after=made[1], before=made[4])
    assert ids(between) == made[2:4]


def test_filters_narrow_the_list(server: Server, lister: str, made: list[str]) -> None:
    assert walk(server, lister, session="listed", limit=1) == made[:4:-1]
    assert walk(server, lister, session="unknown") == []
    assert walk(server, lister, model="hermes-agent", status="completed") == made[::-1]
    assert walk(server, lister, status="failed") == []
    assert walk(server, lister, model="gpt-9") == []


def test_a_list_is_its_owners_alone(server: Server, made: list[str], passer_by: str) -> None:
    assert walk(server, passer_by) == []
    assert walk(server, passer_by, session="listed") == []
    with server.http(passer_by) as client:
        assert_error(client.get("/v1/responses", params={"after": made[0]}), 400, "after")
        assert_error(client.get(f"/v1/responses/{made[0]}/input_items"), 404, "response_id")
        client.headers.pop("Authorization")
        assert_error(client.get("/v1/responses"), 401, None)


def test_a_running_response_is_listed_with_its_text(server: Server) -> None:
    key = create_key(server, "lists-while-running")
    client = server.openai(key)
    asked = script({"say": "so far "}, {"gate": "list-me"})
    running = client.responses.create(input=asked, background=True).id
    eventually(lambda: text(client.responses.retrieve(running).model_dump()) == "so far ")
    [body] = listed(server, key, status="in_progress")["data"]
    assert (body["id"], text(body)) == (running, "so far ")
    server.open_gate("list-me")
    eventually(lambda: listed(server, key, status="completed")["data"])
    assert walk(server, key, status="in_progress") == []


def test_what_is_not_stored_or_deleted_is_not_listed_but_marks_its_place(server: Server) -> None:
    key = create_key(server, "deletes-while-walking")
    client = server.openai(key)
    client.responses.create(input="gone at once", store=False)
    first, second, third = [client.responses.create(input=f"{n}").id for n in range(3)]
    client.responses.delete(second)
    assert walk(server, key) == [third, first]
    assert walk(server, key, after=second) == [first]


BAD_QUERIES = [
    ({"limit": "0"}, "limit"),
    ({"limit": "101"}, "limit"),
    ({"limit": "-1"}, "limit"),
    ({"limit": "many"}, "limit"),
    ({"limit": "1.5"}, "limit"),
    ({"limit": "9" * 400}, "limit"),
    ({"limit": "²"}, "limit"),
    ({"order": "random"}, "order"),
    ({"after": "resp_unknown"}, "after"),
    ({"after": "a\0b"}, "after"),
    ({"before": "resp_unknown"}, "before"),
    ({"before": "a\0b"}, "before"),
]


@pytest.mark.parametrize(("params", "name"), BAD_QUERIES, ids=range(len(BAD_QUERIES)))
def test_a_bad_query_is_named(server: Server, lister: str, made: list[str], params: Any, name: str) -> None:
    with server.http(lister) as client:
        for path in ("/v1/responses", f"/v1/responses/{made[0]}/input_items"):
            assert_error(client.get(path, params=params), 400, name)


def test_bad_filters_are_named(server: Server) -> None:
    with server.http() as client:
        assert_error(client.get("/v1/responses", params={"status": "finished"}), 400, "status")
        for name in ("status", "session", "model"):
            assert_error(client.get("/v1/responses", params={name: "\0"}), 400, name)


def test_other_methods_are_405(server: Server) -> None:
    with server.http() as client:
        for method in ("PUT", "PATCH", "DELETE"):
            assert_error(client.request(method, "/v1/responses"), 405, None)
        assert_error(client.post("/v1/responses/resp_x/input_items"), 405, None)


# -- input items ------------------------------------------------------------------------
def texts_of(items: Any) -> list[str]:
    return [item.content[0].text for item in items]


def test_input_items_come_in_pages_through_the_sdk(server: Server) -> None:
    client = server.openai()
    lines = [f"line {n}" for n in range(5)]
    response_id = client.responses.create(input=[{"role": "user", "content": line} for line in lines]).id
    for order, expected in (("asc", lines), ("desc", lines[::-1])):
        items = list(client.responses.input_items.list(response_id, limit=2, order=order))  # type: ignore[arg-type]
        assert texts_of(items) == expected
        assert len({item.id for item in items}) == 5
    newest_first = client.responses.input_items.list(response_id, include=["reasoning.encrypted_content"])
    assert texts_of(newest_first.data) == texts_of(items)


def test_input_items_are_whole_messages(server: Server) -> None:
    client = server.openai()
    asked: list[Any] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    response_id = client.responses.create(input=asked).id
    page = listed(server, server.key, f"/v1/responses/{response_id}/input_items", order="asc")
    assert not page["has_more"]
    assert [(item["type"], item["status"], item["role"]) for item in page["data"]] == [
        ("message", "completed", role) for role in ("user", "assistant", "user")
    ]
    assert page["data"][0]["content"] == [{"type": "input_text", "text": "a"}]
    assert page["data"][1]["content"] == [{"type": "output_text", "text": "b", "annotations": []}]
    assert len(set(ids(page))) == 3


def test_input_items_of_what_is_gone_are_404(server: Server) -> None:
    client = server.openai()
    unstored = client.responses.create(input="x", store=False).id
    deleted = client.responses.create(input="x").id
    client.responses.delete(deleted)
    with server.http() as http:
        answers: list[httpx.Response] = [
            http.get(f"/v1/responses/{found}/input_items") for found in (unstored, deleted, "resp_no")
        ]
    codes = [assert_error(answer, 404, "response_id")["code"] for answer in answers]
    assert codes == ["response_not_found", "response_deleted", "response_not_found"]


# -- the walk itself --------------------------------------------------------------------
@pytest.mark.django_db
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_rows_of_the_same_moment_are_neither_repeated_nor_missed(order: str) -> None:
    owner = get_user_model().objects.create(username="owner")
    session = Session.objects.opened(owner.pk, None, "responses")
    now = timezone.now()
    for turn in range(9):
        Response.objects.create(
            owner=owner,
            session=session,
            turn=turn,
            status=Status.COMPLETED,
            on_disconnect=OnDisconnect.CONTINUE,
            created_at=now + timedelta(seconds=turn // 4),
            finished_at=now,
        )
    rows = Response.objects.all()
    found: list[Response] = []
    has_more = True
    while has_more:
        after = f"&after={found[-1].pk}" if found else ""
        asked = Request(RequestFactory().get(f"/?limit=2&order={order}{after}"))
        paginator = IdPagination()
        found += paginator.paginate_queryset(rows, asked)
        has_more = paginator.has_more
    expected = sorted(rows, key=lambda row: (row.created_at, row.pk), reverse=order == "desc")
    assert found == expected
