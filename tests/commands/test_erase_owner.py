"""erase_owner: nothing of an owner is left, whatever was stored, and the work of others stays."""

import json
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from responses_app.models import (
    ApiKey,
    ApprovalGrant,
    Conversation,
    ConversationItem,
    EventSegment,
    IdempotencyKey,
    InboxMessage,
    InputItem,
    Note,
    NoteKind,
    OutboxMessage,
    PlatformChat,
    Response,
    SearchEntry,
    Session,
    ToolEvent,
)
from responses_app.protocol.status import OnDisconnect, Status
from responses_app.services.archive.erasing import BATCH_ROWS, OwnerErasure

pytestmark = pytest.mark.django_db
ROWS = 3
OF_OWNERS = (Response, Session, Conversation, IdempotencyKey, ApprovalGrant, Note, ApiKey)
OF_RESPONSES = (EventSegment, InputItem, ToolEvent, SearchEntry)


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path) -> Path:
    settings.HERMES_HOME = tmp_path
    return tmp_path


def fill(name: str, home: Path, rows: int = ROWS, **fields: Any) -> User:
    """A bit of everything that belongs to an owner."""
    owner = User.objects.create_user(name, **fields)
    ApiKey.objects.issue(f"key of {name}", owner)
    session = Session.objects.create(owner=owner, public_id=f"s-{name}", source="responses")
    conversation = Conversation.objects.create(owner=owner, session=session)
    chat = PlatformChat.objects.create(platform="fake", chat_id=name, session=session)
    Note.objects.create(owner=owner, kind=NoteKind.MEMORY, text="a fact")
    now = timezone.now()
    previous = None
    for number in range(rows):
        row = Response.objects.create(
            owner=owner,
            session=session,
            turn=number + 1,
            conversation=conversation,
            previous=previous,
            model="m",
            status=Status.COMPLETED,
            on_disconnect=OnDisconnect.CONTINUE,
            finished_at=now,
        )
        previous = row
        InputItem.objects.create(response=row, position=0, item={})
        positions = {"first_position": 0, "last_position": 0, "first_sequence": 0, "next_sequence": 1}
        EventSegment.objects.create(response=row, attempt=1, commit_marks="0:1", frames=b"x", **positions)
        event = ToolEvent.objects.create(response=row, call_id="c", name="t", attempt=1)
        digest = {"name": "t", "arguments_digest": "d", "granted_by": "operator ada"}
        ApprovalGrant.objects.create(owner=owner, call=event, **digest)
        SearchEntry.objects.create(response=row, words=f"word {name}")
        ConversationItem.objects.create(
            conversation=conversation, position=number, item_id=f"msg_{name}_{number}", response=row
        )
        IdempotencyKey.objects.create(owner=owner, key=f"{number}", digest="d", response=row, expires_at=now)
        InboxMessage.objects.create(
            platform="fake", message_id=f"{name}{number}", chat=chat, sender_id="p", sent_at=now, response=row
        )
        OutboxMessage.objects.create(platform="fake", key=f"{name}{number}", chat=chat, response=row)
    folder = home / "workspaces" / str(owner.pk) / "hermes-agent"
    folder.mkdir(parents=True)
    (folder / "notes.md").write_text("of the owner")
    return owner


def run(*args: str) -> dict[str, Any]:
    out = StringIO()
    call_command("erase_owner", *args, stdout=out, stderr=StringIO())
    receipt: dict[str, Any] = json.loads(out.getvalue())
    return receipt


def everything() -> int:
    models = (*OF_OWNERS, *OF_RESPONSES, ConversationItem, InboxMessage, OutboxMessage, PlatformChat)
    return sum(model._default_manager.count() for model in models)


def test_everything_of_an_owner_goes_and_a_receipt_counts_it(home: Path) -> None:
    fill("ada", home)
    of_ada = everything()
    bob = fill("bob", home)
    found = run("ada", "--dry-run")["found"]
    assert everything() == 2 * of_ada
    receipt = run("ada")
    assert receipt["erased"] == found
    assert sum(found.values()) == of_ada + 1  # and a file
    assert receipt["user_erased"]
    assert everything() == of_ada
    assert not User.objects.filter(username="ada").exists()
    assert [path.name for path in (home / "workspaces").iterdir()] == [str(bob.pk)]
    assert all(model._default_manager.filter(owner=bob).exists() for model in OF_OWNERS)


def test_a_run_that_was_killed_is_continued(home: Path) -> None:
    owner = fill("ada", home, rows=BATCH_ROWS + 5)
    killed = OwnerErasure(owner, nullcontext)
    killed.stop()
    for count in killed.erase_rows():
        if count:
            break
    assert Response.objects.count() == 5
    run("ada")
    assert everything() == 0


def test_the_login_of_staff_stays(home: Path) -> None:
    fill("root", home, is_staff=True)
    assert not run("root")["user_erased"]
    assert everything() == 0
    assert User.objects.get(username="root").is_active


def test_an_unknown_owner_is_refused() -> None:
    with pytest.raises(CommandError, match="There is no user named 'eve'"):
        run("eve")


def test_pruning_all_of_an_owner_does_not_pretend_that_nothing_is_left(home: Path) -> None:
    fill("ada", home)
    with pytest.raises(CommandError, match=r"ada still has .*1 conversations.*erase_owner ada"):
        call_command("prune_responses", "--owner", "ada", "--days", "0", stdout=StringIO(), stderr=StringIO())
    run("ada")
    User.objects.create_user("new")
    call_command("prune_responses", "--owner", "new", "--days", "0", stdout=StringIO(), stderr=StringIO())


@pytest.mark.parametrize("name", ["", "  ", "x" * 101])
def test_a_key_needs_a_name(name: str) -> None:
    with pytest.raises(CommandError, match="The name of a key can"):
        call_command("createkey", name)
    assert not ApiKey.objects.exists()
