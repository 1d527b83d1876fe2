from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import Exists, OuterRef, Q
from django.db.models.fields.json import KT

BATCH_ROWS = 1000
FIELDS = ("pk", "previous_id", "created_at", "kind", "is_stored", "is_history_resent", "has_instructions")
UPDATE = (
    "UPDATE responses_app_response SET chain_root = %s, chain_depth = %s, instructions_at = %s WHERE id = %s"
)


def fill_chains(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """In the order of creation: the turn before is filled first, except where two clocks disagreed.

    Those wait for the next pass.
    """
    responses = apps.get_model("responses_app", "Response").objects
    while _fill_once(responses, editor):
        pass


def _fill_once(responses: Any, editor: BaseDatabaseSchemaEditor) -> int:
    unfilled = responses.filter(chain_root="").annotate(has_instructions=KT("request__instructions"))
    ordered = unfilled.order_by("created_at", "pk").values(*FIELDS)
    after, filled = Q(), 0
    while page := list(ordered.filter(after)[:BATCH_ROWS]):
        filled += _fill_page(responses, page, editor)
        last = page[-1]
        after = Q(created_at__gt=last["created_at"]) | Q(created_at=last["created_at"], pk__gt=last["pk"])
    return filled


def _fill_page(responses: Any, page: list[dict[str, Any]], editor: BaseDatabaseSchemaEditor) -> int:
    before = {row["previous_id"] for row in page if row["previous_id"] is not None}
    found = responses.filter(pk__in=before).exclude(chain_root="")
    known = {pk: values for pk, *values in found.values_list("pk", "chain_root", "chain_depth", "instructions_at")}
    for row in page:
        values = _values(row, known)
        if values is not None:
            known[row["pk"]] = values
    filled = [(*known[row["pk"]], row["pk"]) for row in page if row["pk"] in known]
    with editor.connection.cursor() as cursor:
        cursor.executemany(UPDATE, filled)
    return len(filled)


def _values(row: dict[str, Any], known: dict[str, list[Any]]) -> list[Any] | None:
    root, depth, instructions_at = row["pk"], 0, ""
    if row["kind"] == "compaction" or not row["is_stored"]:
        return [root, depth, instructions_at]  # nothing goes on from it
    if row["previous_id"] is not None:
        if row["previous_id"] not in known:
            return None
        root, depth, instructions_at = known[row["previous_id"]]
        depth += 1
    if row["has_instructions"] is not None:
        instructions_at = row["pk"]
    elif row["is_history_resent"]:
        instructions_at = ""
    return [root, depth, instructions_at]


def fill_sessions(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    turns = apps.get_model("responses_app", "Response").objects.filter(session=OuterRef("pk"), waits_for_turn=True)
    apps.get_model("responses_app", "Session").objects.filter(Exists(turns)).update(has_server_history=True)


class Migration(migrations.Migration):
    dependencies = [("responses_app", "0012_running_values_of_chains")]

    operations = [
        migrations.RunPython(fill_chains, migrations.RunPython.noop),
        migrations.RunPython(fill_sessions, migrations.RunPython.noop),
    ]
