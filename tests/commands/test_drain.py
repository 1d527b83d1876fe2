"""``drain`` in this process; ``tests/cluster`` drains real ones."""

import pytest
from django.core.management import CommandError, call_command

from gateway_app.models import RuntimeProcess

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def test_a_name_that_two_processes_have_drains_neither() -> None:
    """Containers may share a hostname, and each has a process 1."""
    for name in ("first", "second"):
        RuntimeProcess.objects.create(id=name, host="h", pid=1, pid_started="", role="worker")
    with pytest.raises(CommandError, match=r"2 running processes are 'h:1'. Use an id: first, second\."):
        call_command("drain", "h:1")
    assert not RuntimeProcess.objects.filter(drain_requested_at__isnull=False).exists()
    call_command("drain", "second")
    [drained] = RuntimeProcess.objects.filter(drain_requested_at__isnull=False)
    assert drained.pk == "second"
