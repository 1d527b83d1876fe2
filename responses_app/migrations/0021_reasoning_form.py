from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0020_estimated_usage'),
    ]

    operations = [
        migrations.AddField(
            model_name='response',
            name='reasoning_form',
            field=models.CharField(choices=[('raw', 'raw'), ('summary', 'summary')], db_default='summary', default='summary', help_text="How the model's raw reasoning appears in its output.", max_length=10),
        ),
    ]
