import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gateway_app", "0003_cluster"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="runtimeprocess",
            name="workspaces",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Equal in processes that have the same folder of workspaces.",
                max_length=64,
            ),
        ),
        migrations.CreateModel(
            name="WorkspaceHome",
            fields=[
                (
                    "owner",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspaces",
                    models.CharField(
                        help_text="As that of the processes that have it.", max_length=64
                    ),
                ),
                ("host", models.CharField(max_length=255)),
                ("since", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
    ]
