"""Drop indexes that are the beginning of another one: each row of a log wrote a page for them."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

MODELS = ("EventSegment", "InputItem")


def drop_indexes(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """By hand: Django would copy the whole table on SQLite."""
    connection = editor.connection
    for name in MODELS:
        table = apps.get_model("responses_app", name)._meta.db_table
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, table)
        for index, facts in found.items():
            is_plain = facts["index"] and not facts["unique"]
            if is_plain and facts["columns"] == ["response_id"]:
                editor.execute(f"DROP INDEX {editor.quote_name(index)}")


class Migration(migrations.Migration):
    dependencies = [("responses_app", "0027_operators_search")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="eventsegment",
                    name="response",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="segments",
                        to="responses_app.response",
                    ),
                ),
                migrations.AlterField(
                    model_name="inputitem",
                    name="response",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="input_items",
                        to="responses_app.response",
                    ),
                ),
            ],
        ),
        # An earlier version needs none of them either.
        migrations.RunPython(drop_indexes, migrations.RunPython.noop),
    ]
