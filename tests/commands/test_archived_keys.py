"""Archives name the keys of requests: the number of a key means another one on another server."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from responses_app.models import ApiKey, Response, SearchEntry, ToolEvent
from responses_app.protocol.status import Status
from responses_app.services.archive.export import json_lines
from responses_app.services.archive.records import Selection
from tests.support.bulk_rows import make_row

pytestmark = pytest.mark.django_db


def exported(tmp_path: Path) -> Path:
    file = tmp_path / "archive.jsonl"
    file.write_bytes(b"".join(json_lines(Selection())))
    return file


def imported(file: Path) -> Response:
    call_command("import_responses", str(file), stdout=StringIO(), stderr=StringIO())
    return Response.objects.get()


def request_of(key: ApiKey, **fields: Any) -> Response:
    """Without content, so that it needs no log."""
    row = make_row(requested_by=f"key {key.pk}", cancel_requested_by=f"key {key.pk}", is_stored=False, **fields)
    ToolEvent.objects.create(response=row, call_id="c", name="t", attempt=1, decided_by=f"key {key.pk}")
    return row


def laptop(name: str = "owner") -> ApiKey:
    owner, _ = User.objects.get_or_create(username=name)
    key, _ = ApiKey.objects.issue("laptop", owner)
    return key


def test_an_import_never_takes_a_key_of_the_same_number_for_the_one_of_the_archive(tmp_path: Path) -> None:
    key = laptop()
    request_of(key)
    file = exported(tmp_path)
    assert orjson.loads(file.read_bytes())["keys"] == {f"key {key.pk}": "key laptop"}
    Response.objects.all().delete()
    ApiKey.objects.filter(pk=key.pk).update(name="another")
    row = imported(file)
    assert row.requested_by == row.cancel_requested_by == "key laptop (imported)"
    assert ToolEvent.objects.get().decided_by == "key laptop (imported)"
    again = exported(tmp_path)
    Response.objects.all().delete()
    assert imported(again).requested_by == "key laptop (imported)"


def test_the_owners_key_of_the_same_name_is_the_one_of_the_archive(tmp_path: Path) -> None:
    key = laptop()
    request_of(key)
    file = exported(tmp_path)
    Response.objects.all().delete()
    ApiKey.objects.all().delete()
    ApiKey.objects.issue("other", key.owner)
    same = laptop()
    assert imported(file).requested_by == f"key {same.pk}"


def test_the_key_of_another_owner_is_not(tmp_path: Path) -> None:
    request_of(laptop())
    file = exported(tmp_path)
    Response.objects.all().delete()
    ApiKey.objects.all().delete()
    laptop("another")
    assert imported(file).requested_by == "key laptop (imported)"


def test_archives_of_earlier_versions_name_no_keys(tmp_path: Path) -> None:
    key = laptop()
    request_of(key)
    file = exported(tmp_path)
    record = json.loads(file.read_text())
    del record["keys"], record["retry_of"]
    file.write_text(json.dumps(record))
    Response.objects.all().delete()
    assert imported(file).requested_by == f"key {key.pk} (imported)"


def test_what_follows_from_a_record_is_stored_with_it(tmp_path: Path) -> None:
    request_of(laptop(), status=Status.FAILED, error={"code": "rate_limited"}, retry_of="resp_first")
    file = exported(tmp_path)
    Response.objects.all().delete()
    row = imported(file)
    assert (row.error_code, row.retry_of) == ("rate_limited", "resp_first")
    assert not SearchEntry.objects.exists()  # it has no content
