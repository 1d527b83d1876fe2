from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from responses_app.agent_profiles import CLIENT_TOOL_MODES, REPLACE, TOOL_ITEM_FORMS
from responses_app.models.recent import forget_when_changed


class Profile(models.Model):
    """A named agent; its name is the model id that clients see."""

    name = models.CharField(max_length=100, unique=True)
    provider = models.CharField(
        max_length=50, blank=True, help_text="Empty means the server's default provider."
    )
    upstream_model = models.CharField(max_length=200, blank=True)
    base_url = models.URLField(blank=True)
    model_options = models.JSONField(
        default=dict,
        db_default={},  # a server of the version before may still add rows
        blank=True,
        help_text="Values that go with every request to the model: temperature, max_tokens, "
        "extra_body, extra_headers, query, upstream_resume. No secrets: use config.yaml for them.",
    )
    core_prompt = models.TextField(
        blank=True,
        default="",
        db_default="",  # a server of the version before may still add rows
        help_text="Instead of the server's core prompt; empty: that of the server; none: no such text.",
    )
    instructions = models.TextField(
        blank=True, help_text="Added to the core prompt; clients' instructions follow."
    )
    toolset = models.JSONField(
        default=None,
        null=True,
        blank=True,
        help_text="Names of tools and MCP servers that this agent has. Empty: all; []: none.",
    )
    tool_items = models.CharField(
        max_length=20,
        blank=True,
        choices=[(form, form) for form in TOOL_ITEM_FORMS],
        help_text="Item type of its tool calls; auto: what the client reads; "
        "empty: HERMES_TOOL_ITEMS.",
    )
    client_tools = models.CharField(
        max_length=20,
        choices=[(mode, mode) for mode in CLIENT_TOOL_MODES],
        default=REPLACE,
        db_default=REPLACE,  # a server of the version before may still add rows
        help_text="Tools of a request replace those of this agent, or are merged with them.",
    )
    approval_wait = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Calls wait for an approval also where the client can't be asked, as in chats.",
    )
    fallback_models = models.JSONField(
        default=list, blank=True, help_text="Models to try when this one can't be reached."
    )
    context_window = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="In tokens; empty: HERMES_CONTEXT_LENGTH, or what the model's server reports.",
    )
    compact_share = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="Of the context window: a longer conversation is replaced by its summary. "
        "Empty: HERMES_COMPACT_SHARE; 0: never.",
    )
    max_iterations = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
        help_text="How often one turn may ask the model; empty: HERMES_MAX_ITERATIONS.",
    )
    is_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


forget_when_changed(Profile)
