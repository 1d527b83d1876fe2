from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("responses_app", "0015_approvers_of_calls")]
    operations = [
        migrations.RemoveIndex("response", "response_spoken"),
        migrations.RenameField("response", "quirks", "protocol_deviations"),
        migrations.RenameField("response", "spoken_hash", "chat_context_hash"),
        migrations.RenameField("response", "is_history_spoken", "is_history_in_chat_form"),
        migrations.AddIndex(
            "response",
            models.Index(fields=["owner", "chat_context_hash"], name="response_chat_context"),
        ),
    ]
