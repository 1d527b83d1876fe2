from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("responses_app", "0021_reasoning_form")]
    operations = [
        migrations.AddField(
            "response",
            "provider_state",
            models.JSONField(
                help_text="What the provider of each output item needs back with it, "
                "in the same order; no client gets it.",
                null=True,
            ),
        ),
    ]
