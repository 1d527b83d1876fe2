from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("responses_app", "0019_model_options"),
    ]

    operations = [
        migrations.AddField(
            model_name="response",
            name="is_usage_estimated",
            field=models.BooleanField(default=False, help_text="The upstream did not count all of its tokens."),
        ),
        migrations.RemoveIndex(model_name="response", name="response_ended"),
        migrations.AddIndex(
            model_name="response",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False)),
                fields=[
                    "finished_at",
                    "status",
                    "model",
                    "requested_by",
                    "first_output_ms",
                    "total_ms",
                    "input_tokens",
                    "output_tokens",
                    "is_usage_estimated",
                    "tool_calls",
                    "id",
                ],
                name="response_ended",
            ),
        ),
    ]
