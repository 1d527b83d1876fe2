"""Addresses of the admin's lists that show exactly what a number of the dashboard counts."""

from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse

# The names of the filters in the address of a list.
FILTERS = {
    "status": "status__exact",
    "model": "model",
    "key": "requested_by",
    "owner": "owner",
    "work": "work",
}


def responses_address(start: datetime | None, until: datetime | None, **filters: str) -> str:
    """Responses that ended between two times, limited by the filters."""
    params = {FILTERS[name]: value for name, value in filters.items()}
    return _address("responses_app_response", params | _between("finished_at", start, until))


def calls_address(start: datetime, until: datetime, tool: str, *, is_failed: bool) -> str:
    params = {"name": tool} | _between("started_at", start, until)
    if is_failed:
        params["status__in"] = "failed,interrupted"
    return _address("responses_app_toolevent", params)


def waiting_calls_address() -> str:
    return _address("responses_app_toolevent", {"waits": "yes"})


def processes_address() -> str:
    """Without those that only show pages: the dashboard does not count them."""
    params = {"state__exact": "running", "role__in": "web,worker"}
    return _address("gateway_app_runtimeprocess", params)


def _between(field: str, start: datetime | None, until: datetime | None) -> dict[str, str]:
    params = {}
    if start is not None:
        params[f"{field}__gte"] = start.isoformat()
    if until is not None:
        params[f"{field}__lt"] = until.isoformat()
    return params


def _address(model: str, params: dict[str, str]) -> str:
    return f"{reverse(f'admin:{model}_changelist')}?{urlencode(params)}"
