from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("responses_app", "0018_core_prompt")]

    operations = [
        migrations.AddField(
            model_name="profile",
            name="model_options",
            field=models.JSONField(
                blank=True,
                db_default={},
                default=dict,
                help_text="Values that go with every request to the model: temperature, max_tokens, "
                "extra_body, extra_headers, query, upstream_resume. "
                "No secrets: use config.yaml for them.",
            ),
        ),
    ]
