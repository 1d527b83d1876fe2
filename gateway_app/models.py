from django.conf import settings
from django.db import models
from django.utils import timezone


class ProcessState(models.TextChoices):
    RUNNING = "running"
    STOPPED = "stopped"
    LOST = "lost"


class RuntimeProcess(models.Model):
    """One web or worker process, which may hold leases, with its last sign of life."""

    id = models.CharField(primary_key=True, max_length=64)
    host = models.CharField(max_length=255)
    # A default in the database: after a rollback, a version without this column can start.
    machine = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="Kernel and PID namespace in which the pid counts.",
    )
    pid = models.PositiveIntegerField()
    # In clock ticks since boot: the kernel reuses pids.
    pid_started = models.CharField(max_length=64)
    role = models.CharField(max_length=20)
    state = models.CharField(
        max_length=20, choices=ProcessState.choices, default=ProcessState.RUNNING
    )
    active_responses = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(default=timezone.now)
    heartbeat_at = models.DateTimeField(default=timezone.now)
    exit_reason = models.CharField(max_length=200, blank=True)
    # Defaults in the database, as for ``machine``.
    version = models.CharField(max_length=40, blank=True, default="", db_default="")
    is_draining = models.BooleanField(
        default=False, db_default=False, help_text="It claims no more turns."
    )
    drain_requested_at = models.DateTimeField(null=True, blank=True)
    secrets_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Equal in processes with the same secrets.",
    )
    settings_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Equal in processes with the same models, config.yaml and leases.",
    )
    lag_ms = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text="How long its oldest write waited at the last heartbeat.",
    )

    workspaces = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Equal in processes that have the same folder of workspaces.",
    )

    class Meta:
        verbose_name_plural = "runtime processes"
        indexes = [
            # For the sweep, which looks for dead processes, and for health.
            models.Index(
                fields=["host"],
                condition=models.Q(state=ProcessState.RUNNING.value),
                name="process_running",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.host}:{self.pid}"


class WorkspaceHome(models.Model):
    """Where the files of an owner are: the folder in which a tool first used them."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    workspaces = models.CharField(max_length=64, help_text="As that of the processes that have it.")
    host = models.CharField(max_length=255)
    since = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.owner_id} on {self.host}"
