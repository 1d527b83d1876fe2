from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("gateway_app", "0002_process_machine")]

    operations = [
        migrations.AddField(
            model_name="runtimeprocess",
            name="version",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
        migrations.AddField(
            model_name="runtimeprocess",
            name="is_draining",
            field=models.BooleanField(
                db_default=False, default=False, help_text="It claims no more turns."
            ),
        ),
        migrations.AddField(
            model_name="runtimeprocess",
            name="drain_requested_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="runtimeprocess",
            name="secrets_digest",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Equal in processes with the same secrets.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="runtimeprocess",
            name="lag_ms",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="How long its oldest write waited at the last heartbeat.",
            ),
        ),
    ]
