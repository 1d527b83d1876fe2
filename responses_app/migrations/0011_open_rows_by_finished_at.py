from django.db import migrations, models
from django.db.models.functions import Coalesce

OPEN = ['queued', 'in_progress']
TERMINAL = ['completed', 'failed', 'incomplete', 'cancelled']


def agree_with_status(apps, schema_editor):
    rows = apps.get_model('responses_app', 'Response').objects.using(schema_editor.connection.alias)
    unfinished = rows.filter(status__in=TERMINAL, finished_at__isnull=True)
    unfinished.update(finished_at=Coalesce('started_at', 'created_at'))
    rows.filter(status__in=OPEN, finished_at__isnull=False).update(finished_at=None)


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0010_operator_permissions'),
    ]

    operations = [
        migrations.RunPython(agree_with_status, migrations.RunPython.noop),
        migrations.RemoveIndex(
            model_name='response',
            name='response_open',
        ),
        migrations.RemoveIndex(
            model_name='response',
            name='response_open_turn',
        ),
        migrations.RemoveIndex(
            model_name='response',
            name='response_least_used',
        ),
        migrations.RemoveIndex(
            model_name='response',
            name='response_context',
        ),
        migrations.RemoveIndex(
            model_name='response',
            name='response_spoken',
        ),
        migrations.AddConstraint(
            model_name='response',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('status__in', OPEN)), models.Q(('finished_at__isnull', False), ('status__in', TERMINAL)), _connector='OR'), name='response_is_finished_when_terminal'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['created_at'], name='response_open'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['session', 'turn'], name='response_open_turn'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['owner', 'context_hash'], name='response_context'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['owner', 'spoken_hash'], name='response_spoken'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('deleted_at__isnull', True), ('is_stored', True)), fields=['accessed_at', 'id'], name='response_least_used'),
        ),
    ]
