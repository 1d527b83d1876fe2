from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

# The version before has no list for "no tools": this name is no tool's.
NO_TOOL = ["-"]


def all_tools_are_null(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Until now an empty list meant all tools; from now on it means none."""
    profiles = apps.get_model("responses_app", "Profile").objects
    profiles.filter(toolset=[]).update(toolset=None)
    profiles.filter(toolset=NO_TOOL).update(toolset=[])


def all_tools_are_an_empty_list(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    profiles = apps.get_model("responses_app", "Profile").objects
    profiles.filter(toolset=[]).update(toolset=NO_TOOL)
    profiles.filter(toolset__isnull=True).update(toolset=[])


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0022_provider_state'),
    ]

    operations = [
        migrations.AddField(
            model_name='profile',
            name='approval_wait',
            field=models.BooleanField(db_default=False, default=False, help_text="Calls wait for an approval also where the client can't be asked, as in chats."),
        ),
        migrations.AddField(
            model_name='profile',
            name='client_tools',
            field=models.CharField(choices=[('replace', 'replace'), ('merge', 'merge')], db_default='replace', default='replace', help_text='Tools of a request replace those of this agent, or are merged with them.', max_length=20),
        ),
        migrations.AddField(
            model_name='response',
            name='approvals',
            field=models.CharField(choices=[('wait', 'Wait'), ('request', 'Request'), ('deny', 'Deny')], db_default='wait', default='wait', help_text='What a call that needs an approval does.', max_length=10),
        ),
        migrations.AddField(
            model_name='response',
            name='client_tools',
            field=models.CharField(choices=[('replace', 'replace'), ('merge', 'merge')], db_default='replace', default='replace', help_text='Whether its tools replace those of the agent or are merged with them.', max_length=20),
        ),
        migrations.AlterField(
            model_name='profile',
            name='tool_items',
            field=models.CharField(blank=True, choices=[('auto', 'auto'), ('function_call', 'function_call'), ('mcp_call', 'mcp_call')], help_text='Item type of its tool calls; auto: what the client reads; empty: HERMES_TOOL_ITEMS.', max_length=20),
        ),
        migrations.AlterField(
            model_name='profile',
            name='toolset',
            field=models.JSONField(blank=True, default=None, help_text='Names of tools and MCP servers that this agent has. Empty: all; []: none.', null=True),
        ),
        migrations.RunPython(all_tools_are_null, all_tools_are_an_empty_list),
    ]
