"""Header, times and the first screen, as the server renders them."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from gateway_app.config.platforms import PlatformConfig
from gateway_app.models import RuntimeProcess
from gateway_app.operations.model_banner import model_banner
from responses_app.models import ApiKey, Response, Session
from responses_app.protocol.status import OnDisconnect, Status

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_cache")]
AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
UTC_TEXT = "2026-03-01 12:30:00 UTC"
ELEMENT = f'<time datetime="2026-03-01T12:30:00+00:00" title="{UTC_TEXT}">{UTC_TEXT}</time>'
HEADER = re.compile(r'<header class="hs-bar">.*?</header>', re.DOTALL)


@pytest.fixture
def row(admin_user: User) -> Response:
    session = Session.objects.create(
        owner=admin_user,
        public_id="s",
        source="responses",
        title="Plans",
        created_at=AT,
        last_active_at=AT,
    )
    made: Response = Response.objects.create(
        owner=admin_user,
        session=session,
        turn=1,
        model="m",
        status=Status.COMPLETED,
        on_disconnect=OnDisconnect.CONTINUE,
        created_at=AT,
        finished_at=AT,
        output=[],
    )
    return made


def header_of(client: Client, path: str) -> str:
    found = HEADER.findall(client.get(path, follow=True).content.decode())
    assert len(found) == 1, path
    return str(found[0])


def links_in(header: str) -> list[str]:
    return re.findall(r"<li><a [^>]*>(.*?)</a>", header)


def marked_in(header: str) -> list[tuple[str, str]]:
    return re.findall(r'aria-current="(\w+)">(.*?)</a>', header)


def test_every_page_has_one_header_with_the_current_page_marked(
    admin_client: Client,
    row: Response,
    settings: Any,
) -> None:
    settings.HERMES_PLATFORMS = {"fake": PlatformConfig("fake", allowed_senders=frozenset("*"))}
    marked = {
        "/": ("page", "Dashboard"),
        f"/live/{row.pk}": ("true", "Dashboard"),
        "/chat?new": ("page", "Playground"),
        "/platforms": ("page", "Platforms"),
        "/admin/": ("page", "Admin"),
        "/admin/responses_app/response/": ("true", "Admin"),
        f"/admin/responses_app/session/{row.session_id}/change/": ("true", "Admin"),
        "/docs": ("page", "API docs"),
    }
    for path, expected in marked.items():
        header = header_of(admin_client, path)
        assert links_in(header) == ["Dashboard", "Playground", "Platforms", "Admin", "API docs"], path
        assert marked_in(header) == [expected], path
        assert ">admin</a>" in header, path
        assert 'action="/admin/logout/"' in header, path
        assert "csrfmiddlewaretoken" in header, path


def test_the_header_has_no_link_to_what_the_user_may_not_open(settings: Any) -> None:
    settings.HERMES_PLATFORMS = {}
    stranger = Client()
    for path in ("/docs", "/admin/login/"):
        assert links_in(header_of(stranger, path)) == ["API docs"], path
    assert ">Log in</a>" in header_of(stranger, "/docs")
    assert "logout" not in header_of(stranger, "/docs")
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_response"))
    stranger.force_login(viewer)
    assert links_in(header_of(stranger, "/")) == ["Dashboard", "Admin", "API docs"]


@pytest.mark.parametrize("path", ["/", "/admin/", "/admin/password_change/", "/docs"])
def test_the_theme_is_set_by_one_script_before_the_page_is_painted(
    admin_client: Client,
    path: str,
) -> None:
    head = admin_client.get(path).content.decode().partition("<body")[0]
    assert head.count('<script src="/static/dashboard/frame.js"></script>') == 1
    assert "admin/js/theme.js" not in head


def test_times_of_the_admin_are_elements(admin_client: Client, admin_user: User, row: Response) -> None:
    key, _ = ApiKey.objects.issue("laptop", admin_user)
    ApiKey.objects.update(created_at=AT)
    RuntimeProcess.objects.create(id="p", host="h", pid=1, pid_started="", role="web", heartbeat_at=AT)
    rows = "/admin/responses_app"
    for path in (
        f"{rows}/response/",
        f"{rows}/response/{row.pk}/change/",
        f"{rows}/session/",
        f"{rows}/session/{row.session_id}/change/",
        f"{rows}/apikey/",
        f"{rows}/apikey/{key.pk}/change/",
        "/admin/gateway_app/runtimeprocess/",
        f"/live/{row.pk}",
    ):
        assert ELEMENT in admin_client.get(path, follow=True).content.decode(), path


def test_a_list_is_still_sorted_by_its_time(admin_client: Client, row: Response) -> None:
    page = admin_client.get("/admin/responses_app/response/").content.decode()
    assert re.search(r'<th scope="col" class="sortable column-created_at sorted descending">', page)
    assert "sortable column-kind" not in page


def test_the_first_screen_has_an_empty_state_instead_of_plots_without_data(admin_client: Client) -> None:
    page = admin_client.get("/").content.decode()
    assert re.search(r'<p id="no-plots" class="panel empty">No response ended', page)
    assert re.search(r'<div id="plot-grid" class="plots" hidden', page)
    assert not re.search(r">\s*None\s*<", page)


def test_plots_are_there_once_a_response_has_ended(admin_client: Client, row: Response) -> None:
    Response.objects.update(finished_at=datetime.now(UTC))
    page = admin_client.get("/").content.decode()
    assert re.search(r'<p id="no-plots" class="panel empty" hidden>', page)
    assert not re.search(r'<div id="plot-grid" class="plots" hidden', page)


def test_the_demonstration_model_is_named_with_what_to_do(admin_client: Client, settings: Any) -> None:
    model = settings.HERMES_MODELS[0]
    settings.HERMES_MODELS = (model | {"provider": "builtin"},)
    for path in ("/", "/chat?new"):
        notice = admin_client.get(path).content.decode().partition('id="demo-model"')[2]
        lines = notice.partition("<pre>")[2].partition("</pre>")[0].split("\n")
        assert lines[:3] == [
            "export HERMES_PROVIDER=ollama",
            "export HERMES_MODEL=the-name-of-your-model",
            "make run",
        ], path
        assert all(line in model_banner() for line in lines), path
    settings.HERMES_MODELS = (model | {"provider": "ollama"},)
    assert 'id="demo-model"' not in admin_client.get("/").content.decode()


def test_a_call_that_runs_shows_no_none(admin_client: Client, row: Response) -> None:
    event = row.tool_events.create(call_id="c", name="t", attempt=1)
    page = admin_client.get(f"/admin/responses_app/toolevent/{event.pk}/change/").content.decode()
    assert not re.search(r">\s*None\s*<", page)
