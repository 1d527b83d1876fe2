from django.db import models
from django.utils import timezone


class ToolStatus(models.TextChoices):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    AWAITING_APPROVAL = "awaiting_approval"
    DENIED = "denied"


class ToolEventQuerySet(models.QuerySet["ToolEvent"]):
    def begin(self, response_id: str, attempt: int, call_id: str, name: str, arguments: str) -> None:
        self.create(response_id=response_id, attempt=attempt, call_id=call_id, name=name, arguments=arguments)

    def end(self, response_id: str, call_id: str, status: ToolStatus, output: str) -> bool:
        """Record the result of a running call; False when it is not running any more."""
        running = self.filter(response_id=response_id, call_id=call_id, status=ToolStatus.RUNNING)
        return running.update(status=status, output=output, finished_at=timezone.now()) == 1

    def interrupt(self, response_id: str) -> int:
        """Nobody waits for these calls any more; whether they took effect is not known."""
        running = self.filter(response_id=response_id, status=ToolStatus.RUNNING)
        return running.update(status=ToolStatus.INTERRUPTED, finished_at=timezone.now())


class ToolEvent(models.Model):
    """The ledger: a call is written here before it runs, and its result before anything else happens."""

    response = models.ForeignKey("responses_app.Response", on_delete=models.CASCADE, related_name="tool_events")
    call_id = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    arguments = models.TextField(blank=True)
    output = models.TextField(blank=True)
    status = models.CharField(max_length=20, choices=ToolStatus.choices, default=ToolStatus.RUNNING)
    attempt = models.PositiveIntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = ToolEventQuerySet.as_manager()

    class Meta:
        constraints = [
            # A call has one row, whatever the attempt: that is what keeps it from running twice.
            models.UniqueConstraint(fields=["response", "call_id"], name="tool_call_is_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.status})"
