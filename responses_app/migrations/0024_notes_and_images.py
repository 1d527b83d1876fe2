import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0023_tools_and_approvals_by_request'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='toolevent',
            name='images',
            field=models.TextField(blank=True, db_default='', default='', help_text='The images of its output, as a JSON array of data URLs.'),
        ),
        migrations.CreateModel(
            name='Note',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('todo', 'Todo'), ('memory', 'Memory')], max_length=10)),
                ('session_key', models.CharField(blank=True, default='', help_text='The X-Hermes-Session-Key of the turns that see a memory.', max_length=256)),
                ('text', models.TextField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='agent_notes', to=settings.AUTH_USER_MODEL)),
                ('session', models.ForeignKey(blank=True, help_text='Of a todo entry; a memory is for all sessions.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='responses_app.session')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'kind', 'session_key'], name='note_by_scope')],
            },
        ),
    ]
