"""What was read a moment ago is not read again, and never hides a change of this process."""

import asyncio
import threading

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection, transaction

from responses_app.eventlog.store import EventStore
from responses_app.http.principals import authenticate
from responses_app.models import ApiKey, Profile
from responses_app.models import recent as recent_module
from responses_app.models.recent import FRESH_SECS, RENEWED_SECS, RecentlyRead
from responses_app.protocol.errors import Unauthenticated
from responses_app.services.keys import revoke_key
from responses_app.services.profiles import find_profile, models_of_key
from tests.support.server import KNOWN_SECS

pytestmark = pytest.mark.django_db(transaction=True)
LONG_SECS = 60.0


@pytest.fixture
def secret() -> str:
    owner = User.objects.create_user("owner")
    return ApiKey.objects.issue("phone", owner)[1]


def test_commands_of_tests_wait_as_long_as_a_value_is_kept() -> None:
    assert KNOWN_SECS >= FRESH_SECS


def test_a_value_is_read_once_while_it_is_fresh() -> None:
    recent: RecentlyRead[str, object] = RecentlyRead(LONG_SECS)
    assert recent.get("one", object) is recent.get("one", object)
    assert recent.get("one", object) is not recent.get("two", object)


def test_a_value_that_changes_while_it_is_read_is_not_kept() -> None:
    recent: RecentlyRead[str, str] = RecentlyRead(LONG_SECS)

    def read_before_the_change() -> str:
        recent.forget()
        return "old"

    assert recent.get("key", read_before_the_change) == "old"
    assert recent.get("key", lambda: "new") == "new"


def test_a_transaction_keeps_nothing() -> None:
    recent: RecentlyRead[str, str] = RecentlyRead(LONG_SECS)
    with transaction.atomic():
        assert recent.get("key", lambda: "rolled back") == "rolled back"
    assert recent.get("key", lambda: "stored") == "stored"


def test_a_revoked_key_ends_at_once(secret: str) -> None:
    header = f"Bearer {secret}"
    assert authenticate(header).key_id == ApiKey.objects.get().pk
    revoke_key(ApiKey.objects.get())
    with pytest.raises(Unauthenticated):
        authenticate(header)


def test_a_user_that_is_not_active_any_more_ends_its_keys_at_once(secret: str) -> None:
    owner = authenticate(f"Bearer {secret}").user
    owner.is_active = False
    owner.save()
    with pytest.raises(Unauthenticated):
        authenticate(f"Bearer {secret}")


def test_profiles_and_the_lists_of_keys_change_at_once(secret: str) -> None:
    key = ApiKey.objects.get()
    assert models_of_key(key.pk) == ["hermes-agent"]
    coder = Profile.objects.create(name="coder", instructions="Write tests first.")
    assert models_of_key(key.pk) == ["hermes-agent", "coder"]
    key.profiles.set([coder])
    assert models_of_key(key.pk) == ["coder"]
    found = find_profile("coder")
    assert found is not None
    assert found.instructions == "Write tests first."
    coder.instructions = "Be kind."
    coder.save()
    found = find_profile("coder")
    assert found is not None
    assert found.instructions == "Be kind."
    coder.delete()
    assert models_of_key(key.pk) == []


async def test_the_event_loop_answers_what_is_known_and_a_thread_the_rest(store: EventStore) -> None:
    recent: RecentlyRead[str, str] = RecentlyRead(LONG_SECS)
    threads: list[str] = []

    def query() -> str:
        threads.append(threading.current_thread().name)
        return recent.get("key", _read)

    def _read() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 'stored'")
            return str(cursor.fetchone()[0])

    with pytest.raises(SynchronousOnlyOperation):
        query()
    threads.clear()
    for _ in range(2):
        assert await store.database.look_up(query) == "stored"
    assert [name.startswith("database-reader") for name in threads] == [False, True, False]


async def test_what_is_in_use_is_read_again_before_a_request_has_to_wait(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(recent_module, "monotonic", lambda: clock[0])
    recent: RecentlyRead[str, int] = RecentlyRead()
    reads: list[str] = []

    def read() -> int:
        reads.append(threading.current_thread().name)
        return len(reads)

    def query() -> int:
        return recent.get("used", read)

    assert recent.get("idle", lambda: 0) == 0
    assert await store.database.look_up(query) == 1
    clock[0] = RENEWED_SECS + 0.01
    assert await store.database.look_up(query) == 1
    await asyncio.gather(*store.database._background)
    assert [name.startswith("database-reader") for name in reads] == [False, True]
    clock[0] = FRESH_SECS + 0.01
    assert await store.database.look_up(query) == 2
    assert recent.get("idle", lambda: 1) == 1
