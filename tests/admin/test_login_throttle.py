"""Failed logins are limited by address and name, before a password is hashed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.server import Server
from tests.support.staff import STAFF_PASSWORD, make_staff

pytestmark = pytest.mark.any_database


def log_in(server: Server, name: str, password: str, **headers: str) -> int:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        client.get("/admin/login/")
        token = client.cookies["csrftoken"]
        fields = {"username": name, "password": password, "csrfmiddlewaretoken": token}
        named = {header.replace("_", "-"): value for header, value in headers.items()}
        answer = client.post("/admin/login/", data=fields, headers={"Referer": server.url, **named})
    if answer.status_code == 429:
        assert answer.headers["retry-after"] == "60"
    return answer.status_code


def test_the_sixth_failure_of_a_name_is_refused_even_with_the_right_password(
    make_server: Callable[..., Server],
) -> None:
    server = make_server()
    make_staff(server, "first")
    make_staff(server, "second")
    assert [log_in(server, "first", "wrong") for _ in range(5)] == [200] * 5
    assert log_in(server, "first", STAFF_PASSWORD) == 429
    assert log_in(server, "second", STAFF_PASSWORD) == 302


def test_one_address_can_not_try_many_names(make_server: Callable[..., Server]) -> None:
    server = make_server()
    answers = [log_in(server, f"name-{number}", "wrong") for number in range(21)]
    assert answers == [200] * 20 + [429]


def test_behind_a_proxy_the_client_is_known_by_the_last_address_it_saw(
    make_server: Callable[..., Server],
) -> None:
    server = make_server(HERMES_PUBLIC_URL="http://localhost")
    for _ in range(5):
        assert log_in(server, "admin", "wrong", X_Forwarded_For="9.9.9.9, 1.1.1.1") == 200
    assert log_in(server, "admin", "wrong", X_Forwarded_For="8.8.8.8, 1.1.1.1") == 429
    assert log_in(server, "admin", "wrong", X_Forwarded_For="1.1.1.1, 2.2.2.2") == 200


def test_logins_at_the_same_time_are_counted_too(make_server: Callable[..., Server]) -> None:
    server = make_server()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: log_in(server, "admin", "wrong"), range(12)))
    assert answers.count(200) == 5


@pytest.mark.parametrize("spelling", [" admin", "\uff41dmin"])
def test_another_spelling_of_a_name_is_the_same_name(make_server: Callable[..., Server], spelling: str) -> None:
    server = make_server()
    assert [log_in(server, "admin", "wrong") for _ in range(5)] == [200] * 5
    assert log_in(server, spelling, "wrong") == 429
