"""Erase what earlier versions left of deleted and of unstored responses."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F, Q, Value
from django.db.models.functions import Cast, Concat

MISSING_TOOL = "Error: there is no tool named "


def erase_leftovers(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    numbered = Cast("pk", models.CharField())
    responses = apps.get_model("responses_app", "Response").objects
    calls = apps.get_model("responses_app", "ToolEvent").objects
    sessions = apps.get_model("responses_app", "Session").objects
    entries = apps.get_model("admin", "LogEntry").objects
    gone = responses.filter(Q(deleted_at__isnull=False) | Q(is_stored=False))
    ended = gone.filter(finished_at__isnull=False)
    calls.filter(status="failed", output__startswith=MISSING_TOOL).update(name="unknown")
    calls.filter(response__in=ended).update(
        arguments="", output="", approval_reason="", call_id=Concat(Value("erased_"), numbered)
    )
    ended.update(ignored=[], quirks=[], session_key="", context_hash="", spoken_hash="")
    sessions.filter(deleted_at__isnull=False).update(
        key="", public_id=Concat(Value("deleted_"), numbered)
    )
    own = entries.filter(content_type__app_label="responses_app")
    own.filter(content_type__model="session").update(object_repr=F("object_id"))


class Migration(migrations.Migration):
    dependencies = [
        ("responses_app", "0013_fill_chains"),
        ("admin", "0003_logentry_add_action_flag_choices"),
    ]
    operations = [
        migrations.AlterField(
            model_name="idempotencykey",
            name="digest",
            field=models.CharField(
                help_text="Of the path, the body and what the headers add. Empty once that is erased.",
                max_length=64,
            ),
        ),
        migrations.RunPython(erase_leftovers, migrations.RunPython.noop),
    ]
