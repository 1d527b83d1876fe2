from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from responses_app.agent_profiles import CLIENT_TOOL_MODES, REPLACE
from responses_app.models.response_queries import (
    Kind,
    ResponseQuerySet,
    is_held,
    is_parked,
    work_states,
)
from responses_app.models.sessions import MAX_SESSION_KEY_CHARS
from responses_app.models.tool_events import ApprovalMode
from responses_app.protocol.ids import new_response_id
from responses_app.protocol.reasoning_items import FORMS as REASONING_FORMS
from responses_app.protocol.reasoning_items import SUMMARY
from responses_app.protocol.status import (
    OPEN,
    TERMINAL,
    OnDisconnect,
    Status,
)

__all__ = ["Kind", "Response", "ResponseQuerySet", "is_held", "is_parked", "work_states"]

MAX_ERROR_CODE_CHARS = 100

MEASURES = (
    "first_output_ms",
    "total_ms",
    "input_tokens",
    "output_tokens",
    "is_usage_estimated",
    "tool_calls",
)


class Response(models.Model):
    id = models.CharField(primary_key=True, max_length=64, default=new_response_id)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="responses"
    )
    session = models.ForeignKey(
        "responses_app.Session", on_delete=models.CASCADE, related_name="responses"
    )
    turn = models.PositiveIntegerField(help_text="Its number in the session.")
    session_key = models.CharField(max_length=MAX_SESSION_KEY_CHARS, blank=True, default="")
    conversation = models.ForeignKey(
        "responses_app.Conversation",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="responses",
    )
    previous = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children"
    )
    # No foreign key: the id stays when the first try is pruned.
    retry_of = models.CharField(
        max_length=64, null=True, blank=True, help_text="The response that it tries again."
    )
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.RESPONSES)
    status = models.CharField(max_length=20, choices=[(s, s) for s in Status])
    model = models.CharField(max_length=200)
    requested_by = models.CharField(
        max_length=200,
        blank=True,
        default="",
        help_text="The API key or the operator that made the request.",
    )
    request = models.JSONField(default=dict, help_text="The request without its input.")
    ignored = models.JSONField(
        default=list, help_text="Fields of the request that nothing here acts on."
    )
    output = models.JSONField(null=True, help_text="The output items, once it has ended.")
    provider_state = models.JSONField(
        null=True,
        help_text="What the provider of each output item needs back with it, "
        "in the same order; no client gets it.",
    )
    usage = models.JSONField(null=True)
    is_usage_estimated = models.BooleanField(
        default=False, help_text="The upstream did not count all of its tokens."
    )
    error = models.JSONField(null=True)
    error_code = models.CharField(
        max_length=MAX_ERROR_CODE_CHARS, null=True, blank=True, help_text="The code of its error."
    )
    protocol_deviations = models.JSONField(
        default=list, help_text="Deviations of the upstream from its protocol that were tolerated."
    )
    incomplete_reason = models.CharField(max_length=30, blank=True)
    context_hash = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="Hash of the conversation up to its last output.",
    )
    chat_context_hash = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="The same hash for clients that resend messages without tool items.",
    )
    is_history_resent = models.BooleanField(
        default=False,
        help_text="The client sent its history again; "
        "earlier turns are stored with their own responses.",
    )
    is_history_in_chat_form = models.BooleanField(
        default=False,
        help_text="The history that it sent has no tool items.",
    )
    # Running values of the chain that ends with this row: admission and settle read them from the
    # row before it instead of walking the chain.
    chain_root = models.CharField(
        max_length=64, blank=True, default="", help_text="The first turn of its chain."
    )
    chain_depth = models.PositiveIntegerField(
        default=0, help_text="How many turns of its chain are before it."
    )
    instructions_at = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="The turn whose instructions the next one inherits.",
    )
    compaction_at = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="The nearest turn that has a compaction; see context_tokens.",
    )
    context_tokens = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Estimated tokens of the chain as a model receives it. "
        "Empty: this and compaction_at are unknown.",
    )
    message_count = models.PositiveIntegerField(
        default=0, help_text="Messages that it added to the transcript of its session."
    )
    tool_items = models.CharField(max_length=20, default="function_call")
    # The defaults of these two are what older versions did.
    client_tools = models.CharField(
        max_length=20,
        choices=[(mode, mode) for mode in CLIENT_TOOL_MODES],
        default=REPLACE,
        db_default=REPLACE,
        help_text="Whether its tools replace those of the agent or are merged with them.",
    )
    approvals = models.CharField(
        max_length=10,
        choices=ApprovalMode.choices,
        default=ApprovalMode.WAIT,
        db_default=ApprovalMode.WAIT,
        help_text="What a call that needs an approval does.",
    )
    # The default is the form of every response that older versions made.
    reasoning_form = models.CharField(
        max_length=10,
        choices=[(form, form) for form in REASONING_FORMS],
        default=SUMMARY,
        db_default=SUMMARY,
        help_text="How the model's raw reasoning appears in its output.",
    )

    is_stored = models.BooleanField(default=True)
    is_background = models.BooleanField(default=False)
    waits_for_turn = models.BooleanField(
        default=False, help_text="The server supplies its history."
    )
    on_disconnect = models.CharField(max_length=10, choices=[(d, d) for d in OnDisconnect])

    attempt = models.PositiveIntegerField(default=0)
    crashes = models.PositiveIntegerField(
        default=0, help_text="Attempts that ended without settling the response."
    )
    parked_until = models.DateTimeField(
        null=True, blank=True, help_text="Waits for an approval, at most until then."
    )
    lease_owner = models.CharField(max_length=64, blank=True, default="")
    lease_until = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.CharField(max_length=200, blank=True, default="")
    last_position = models.IntegerField(default=-1, help_text="Of its log, once it has ended.")
    last_sequence = models.IntegerField(default=-1)
    is_log_merged = models.BooleanField(default=False)

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    accessed_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="Content erased; this row is the tombstone."
    )

    # Measures, known once it has ended; columns of their own, so that an index can hold them.
    first_output_ms = models.BigIntegerField(
        null=True, blank=True, help_text="From the request to the first output."
    )
    total_ms = models.BigIntegerField(
        null=True, blank=True, help_text="From the request to the end."
    )
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    tool_calls = models.PositiveIntegerField(default=0, help_text="Of the server's tools.")

    objects = ResponseQuerySet.as_manager()

    class Meta:
        permissions = [("use_playground", "Can use the playground")]
        constraints = [
            models.UniqueConstraint(fields=["session", "turn"], name="one_response_per_turn"),
            models.CheckConstraint(
                condition=Q(status__in=list(Status)), name="response_status_is_known"
            ),
            # open() reads finished_at alone.
            models.CheckConstraint(
                condition=Q(status__in=list(OPEN), finished_at__isnull=True)
                | Q(status__in=list(TERMINAL), finished_at__isnull=False),
                name="response_is_finished_when_terminal",
            ),
        ]
        indexes = [
            # The runner's sweep: claimable(), release(); health, and running responses on the dashboard.
            models.Index(
                fields=["created_at"], condition=Q(finished_at__isnull=True), name="response_open"
            ),
            # Earlier open turns of a session: claimable(), next_in_session(), make_room().
            models.Index(
                fields=["session", "turn"],
                condition=Q(finished_at__isnull=True),
                name="response_open_turn",
            ),
            # The housekeeping that merges the logs of ended responses.
            models.Index(
                fields=["finished_at"],
                condition=Q(is_log_merged=False),
                name="response_log_unmerged",
            ),
            # admit() finds the turn up to which a client resends its history. Not partial: SQLite
            # can't prove that a bound hash is not empty, and would walk all rows of the owner.
            models.Index(fields=["owner", "context_hash"], name="response_context"),
            models.Index(fields=["owner", "chat_context_hash"], name="response_chat_context"),
            # deleted_before(): deleted turns of a chain.
            models.Index(
                fields=["chain_root", "chain_depth"],
                condition=Q(deleted_at__isnull=False),
                name="response_deleted",
            ),
            # newest_turn(): a session may hold thousands of tombstones and of unstored turns.
            models.Index(
                fields=["session", "turn"],
                condition=Q(is_stored=True, deleted_at__isnull=True),
                name="response_newest_turn",
            ),
            # The owner's newest-first list.
            models.Index(fields=["owner", "-created_at"], name="response_by_owner"),
            # The dashboard reads its numbers and lists over a window of time from this index alone:
            # the rows hold whole requests and outputs.
            models.Index(
                fields=["finished_at", "status", "model", "requested_by", *MEASURES, "id"],
                condition=Q(finished_at__isnull=False),
                name="response_ended",
            ),
            # The admin's newest-first list, exports, and retention by age.
            models.Index(fields=["-created_at"], name="response_newest"),
            models.Index(fields=["status", "-created_at"], name="response_by_status"),
            # The filters of the admin's list; also where nothing matches.
            models.Index(fields=["kind", "-created_at"], name="response_by_kind"),
            models.Index(fields=["model", "-created_at"], name="response_by_model"),
            models.Index(fields=["requested_by", "-created_at"], name="response_by_key"),
            models.Index(
                fields=["error_code", "-created_at"],
                condition=Q(error_code__isnull=False),
                name="response_by_error",
            ),
            # The page of a response links to its retries.
            models.Index(
                fields=["retry_of"], condition=Q(retry_of__isnull=False), name="response_retries"
            ),
            # Eviction of the least recently used: counted and walked in this index alone.
            models.Index(
                fields=["accessed_at", "id"],
                condition=Q(is_stored=True, deleted_at__isnull=True),
                name="response_least_used",
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def is_open(self) -> bool:
        return self.status in OPEN
