"""Slots are shared between owners: one that asks for everything keeps no other waiting."""

from collections.abc import Callable

import httpx

from gateway_app.runtime.slots import MAX_WAITING, Slots
from tests.support.people import create_key
from tests.support.server import Server, eventually, script

ALICE, BOB, CAROL = 1, 2, 3


def start_all(slots: Slots) -> list[tuple[str, int]]:
    started: list[tuple[str, int]] = []
    while (found := slots.next()) is not None:
        slots.forget(*found)
        slots.take(found[1])
        started.append(found)
    return started


def waiting(slots: Slots, owner: int, count: int) -> None:
    for number in range(count):
        slots.wait(f"{owner}-{number}", owner)


def test_one_owner_never_holds_the_last_slots() -> None:
    slots = Slots(16)
    waiting(slots, ALICE, 100)
    assert len(start_all(slots)) == 14
    assert slots.full_owners() == [ALICE]
    waiting(slots, BOB, 5)
    assert start_all(slots) == [("2-0", BOB), ("2-1", BOB)]


def test_the_next_slot_goes_to_the_owner_with_the_fewest() -> None:
    slots = Slots(4)
    waiting(slots, ALICE, 10)
    waiting(slots, BOB, 10)
    assert [owner for _, owner in start_all(slots)] == [ALICE, BOB, ALICE, BOB]
    slots.wait("carol", CAROL)
    slots.give_back(ALICE)
    assert slots.next() == ("carol", CAROL)


def test_a_single_slot_is_used() -> None:
    slots = Slots(1)
    waiting(slots, ALICE, 2)
    assert start_all(slots) == [("1-0", ALICE)]
    slots.give_back(ALICE)
    assert start_all(slots) == [("1-1", ALICE)]


def test_what_waits_is_bounded_for_each_owner() -> None:
    slots = Slots(2)
    waiting(slots, ALICE, 2 * MAX_WAITING)
    waiting(slots, BOB, 1)
    assert start_all(slots) == [("1-0", ALICE), ("2-0", BOB)]


def ask(client: httpx.Client, gate: str) -> str:
    body = {"input": script({"gate": gate}, {"say": "done"}), "background": True}
    return str(client.post("/v1/responses", json=body).json()["id"])


def test_a_tenant_that_fills_the_slots_keeps_no_other_waiting(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_CONCURRENT="4", HERMES_SWEEP_SECS="0.2")
    hasty = create_key(server, "hasty")
    with server.http() as greedy, server.http(hasty) as other:
        long = [ask(greedy, "slots-long") for _ in range(12)]
        eventually(lambda: len(server.model_calls("slots-long")) == 3)
        quick = other.post("/v1/responses", json={"input": "hello"}).json()
        assert quick["status"] == "completed"
        assert len(server.model_calls("slots-long")) == 3
    server.open_gate("slots-long")
    for response_id in long:
        assert server.ended(response_id)["status"] == "completed"
