"""erase_owner: nothing of an owner is left, whatever was stored, and the work of others stays."""

import json
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from gateway_app.models import WorkspaceHome
from gateway_app.runtime.workspaces import known_folder_name
from responses_app import models
from responses_app.management.commands import erase_owner
from responses_app.protocol.status import OnDisconnect, Status
from responses_app.services.archive.erasing import BATCH_ROWS, OwnerErasure

pytestmark = pytest.mark.django_db
ROWS = 3
OF_OWNERS = (
    models.Response,
    models.Session,
    models.Conversation,
    models.IdempotencyKey,
    models.ApprovalGrant,
    models.Note,
    models.ApiKey,
)
OF_RESPONSES = (models.EventSegment, models.InputItem, models.ToolEvent, models.SearchEntry)


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path) -> Path:
    settings.HERMES_HOME = tmp_path
    return tmp_path


def fill(name: str, home: Path, rows: int = ROWS, **fields: Any) -> User:
    """A bit of everything that belongs to an owner."""
    owner = User.objects.create_user(name, **fields)
    models.ApiKey.objects.issue(f"key of {name}", owner)
    session = models.Session.objects.create(owner=owner, public_id=f"s-{name}", source="responses")
    conversation = models.Conversation.objects.create(owner=owner, session=session)
    chat = models.PlatformChat.objects.create(platform="fake", chat_id=name, session=session)
    models.Note.objects.create(owner=owner, kind=models.NoteKind.MEMORY, text="a fact")
    now = timezone.now()
    previous = None
    for number in range(rows):
        row = models.Response.objects.create(
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
        models.InputItem.objects.create(response=row, position=0, item={})
        positions = {"first_position": 0, "last_position": 0, "first_sequence": 0, "next_sequence": 1}
        models.EventSegment.objects.create(response=row, attempt=1, commit_marks="0:1", frames=b"x", **positions)
        event = models.ToolEvent.objects.create(response=row, call_id="c", name="t", attempt=1)
        digest = {"name": "t", "arguments_digest": "d", "granted_by": "operator ada"}
        models.ApprovalGrant.objects.create(owner=owner, call=event, **digest)
        models.SearchEntry.objects.create(response=row, words=f"word {name}")
        models.ConversationItem.objects.create(
            conversation=conversation, position=number, item_id=f"msg_{name}_{number}", response=row
        )
        models.IdempotencyKey.objects.create(owner=owner, key=f"{number}", digest="d", response=row, expires_at=now)
        models.InboxMessage.objects.create(
            platform="fake", message_id=f"{name}{number}", chat=chat, sender_id="p", sent_at=now, response=row
        )
        models.OutboxMessage.objects.create(platform="fake", key=f"{name}{number}", chat=chat, response=row)
    folder = home / "workspaces" / str(owner.pk) / "hermes-agent"
    folder.mkdir(parents=True)
    (folder / "notes.md").write_text("of the owner")
    return owner


def run(*args: str, stderr: StringIO | None = None) -> dict[str, Any]:
    out = StringIO()
    call_command("erase_owner", *args, stdout=out, stderr=stderr or StringIO())
    receipt: dict[str, Any] = json.loads(out.getvalue())
    return receipt


def everything() -> int:
    of_others = (models.ConversationItem, models.InboxMessage, models.OutboxMessage, models.PlatformChat)
    return sum(model._default_manager.count() for model in (*OF_OWNERS, *OF_RESPONSES, *of_others))


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


def test_files_on_another_host_are_named_with_what_erases_them(home: Path) -> None:
    owner = fill("ada", home)
    WorkspaceHome.objects.create(owner=owner, workspaces="another", host="worker-2")
    command = f'rm -r "$HERMES_HOME/workspaces/{owner.pk}"'
    left = [{"host": "worker-2", "run": command}]
    assert run("ada", "--dry-run")["files_elsewhere"] == left
    errors = StringIO()
    assert run("ada", stderr=errors)["files_elsewhere"] == left
    assert f"still on the host worker-2. Run there: {command}" in errors.getvalue()


def test_files_on_this_host_are_erased_and_not_named(home: Path) -> None:
    owner = fill("ada", home)
    WorkspaceHome.objects.create(owner=owner, workspaces=known_folder_name(), host="here")
    assert run("ada")["files_elsewhere"] == []


def test_a_run_that_was_killed_is_continued(home: Path) -> None:
    owner = fill("ada", home, rows=BATCH_ROWS + 5)
    killed = OwnerErasure(owner, nullcontext)
    killed.stop()
    for count in killed.erase_rows():
        if count:
            break
    assert models.Response.objects.count() == 5
    run("ada")
    assert everything() == 0


def test_a_run_that_was_killed_near_its_end_can_be_repeated(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as words are in the search index, the user is there to name."""
    fill("ada", home)
    with monkeypatch.context() as patch:
        patch.setattr(erase_owner, "purge", Mock(side_effect=SystemExit))
        with pytest.raises(SystemExit):
            run("ada")
    assert run("ada")["user_erased"]


def test_the_login_of_staff_stays(home: Path) -> None:
    fill("root", home, is_staff=True)
    assert not run("root")["user_erased"]
    assert everything() == 0
    assert User.objects.get(username="root").is_active


@pytest.mark.parametrize("name", ["eve", "", "\udcff"])  # the last is a byte that is not UTF-8
def test_an_unknown_owner_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="There is no user named '"):
        run(name)


def test_the_name_of_an_owner_may_have_any_characters(home: Path) -> None:
    name = 'O\'Brien "x"; DROP/../ü💥 %s'
    fill(name, home)
    receipt = run(name)
    assert (receipt["owner"], receipt["user_erased"]) == (name, True)
    assert everything() == 0


def test_pruning_all_of_an_owner_does_not_pretend_that_nothing_is_left(home: Path) -> None:
    fill("ada", home)
    with pytest.raises(CommandError, match=r"ada still has .*1 conversations.*erase_owner ada"):
        call_command("prune_responses", "--owner", "ada", "--days", "0", stdout=StringIO(), stderr=StringIO())
    run("ada")
    User.objects.create_user("new")
    call_command("prune_responses", "--owner", "new", "--days", "0", stdout=StringIO(), stderr=StringIO())


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb", "\udcff"])
def test_a_key_needs_a_name(name: str) -> None:
    with pytest.raises(CommandError, match="The name of a key can"):
        call_command("createkey", name)
    assert not models.ApiKey.objects.exists()
