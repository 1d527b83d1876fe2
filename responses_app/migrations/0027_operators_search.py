import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models.fields.json import KT
from django.db.models.functions import Left

# Each word of an entry is a token: anything between two spaces. No positions, no copy of the text.
SQLITE = (
    """
    CREATE VIRTUAL TABLE responses_app_search USING fts5(
        words, content='responses_app_searchentry', content_rowid='id',
        tokenize='ascii', detail='none', columnsize=0
    )
    """,
    # One row if words were erased since the last purge, and how often.
    "CREATE TABLE responses_app_search_erased (id integer PRIMARY KEY, count integer NOT NULL)",
    """
    CREATE TRIGGER responses_app_search_insert AFTER INSERT ON responses_app_searchentry BEGIN
        INSERT INTO responses_app_search(rowid, words) VALUES (new.id, new.words);
    END
    """,
    """
    CREATE TRIGGER responses_app_search_delete AFTER DELETE ON responses_app_searchentry BEGIN
        INSERT INTO responses_app_search(responses_app_search, rowid, words)
        VALUES ('delete', old.id, old.words);
        INSERT INTO responses_app_search_erased (id, count) VALUES (1, 1)
        ON CONFLICT (id) DO UPDATE SET count = count + 1;
    END
    """,
)
POSTGRESQL = (
    """
    CREATE INDEX search_entry_words ON responses_app_searchentry
    USING gin (array_to_tsvector(string_to_array(words, ' ')))
    """,
)


def create_index(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    statements = SQLITE if editor.connection.vendor == "sqlite" else POSTGRESQL
    for statement in statements:
        editor.execute(statement)


def drop_index(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """On PostgreSQL it goes with its table."""
    if editor.connection.vendor == "sqlite":
        editor.execute("DROP TRIGGER responses_app_search_insert")
        editor.execute("DROP TRIGGER responses_app_search_delete")
        editor.execute("DROP TABLE responses_app_search_erased")
        editor.execute("DROP TABLE responses_app_search")


def fill_error_codes(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    rows = apps.get_model("responses_app", "Response").objects.using(editor.connection.alias)
    failed = rows.filter(status="failed", error__isnull=False)
    failed.update(error_code=Left(KT("error__code"), 100))


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0026_platforms'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SearchEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('words', models.TextField()),
            ],
            options={
                'verbose_name_plural': 'search entries',
            },
        ),
        migrations.AddField(
            model_name='approvalgrant',
            name='call',
            field=models.ForeignKey(blank=True, help_text='The call that was approved.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='grants', to='responses_app.toolevent'),
        ),
        migrations.AddField(
            model_name='response',
            name='error_code',
            field=models.CharField(blank=True, help_text='The code of its error.', max_length=100, null=True),
        ),
        migrations.AddField(
            model_name='response',
            name='retry_of',
            field=models.CharField(blank=True, help_text='The response that it tries again.', max_length=64, null=True),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['kind', '-created_at'], name='response_by_kind'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['model', '-created_at'], name='response_by_model'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['requested_by', '-created_at'], name='response_by_key'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('error_code__isnull', False)), fields=['error_code', '-created_at'], name='response_by_error'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('retry_of__isnull', False)), fields=['retry_of'], name='response_retries'),
        ),
        migrations.AddIndex(
            model_name='toolevent',
            index=models.Index(fields=['name', 'response'], name='tool_event_by_name'),
        ),
        migrations.AddField(
            model_name='searchentry',
            name='response',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='search_entry', to='responses_app.response'),
        ),
        migrations.RunPython(fill_error_codes, migrations.RunPython.noop),
        migrations.RunPython(create_index, drop_index),
    ]
