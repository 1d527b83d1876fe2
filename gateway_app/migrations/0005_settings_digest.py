from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("gateway_app", "0004_workspaces")]

    operations = [
        migrations.AddField(
            model_name="runtimeprocess",
            name="settings_digest",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Equal in processes with the same models, config.yaml and leases.",
                max_length=64,
            ),
        ),
    ]
