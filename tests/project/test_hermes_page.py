"""The page for people who come from Hermes Agent names what exists here, and nothing else as existing."""

import re
from typing import Any

import pytest

from gateway_app.api.runs.renderers import RunEvent
from gateway_app.api.sessions.renderers import SessionEvent
from gateway_app.config.known_keys import ignored_keys, sections
from hermes_site.asgi import routes
from responses_app.http.cors import ALLOWED_HEADERS, EXPOSED_HEADERS
from responses_app.protocol import events
from responses_app.streaming.routing import allowed_methods
from tests.support.server import ROOT

pytestmark = pytest.mark.any_database

PAGE = (ROOT / "docs/hermes.md").read_text()
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
ERRORS = "".join((ROOT / f"docs/{page}.md").read_text() for page in ("api", "chat", "sessions"))
VERDICTS = {"same", "better", "differs", "not there"}
STREAMS = {
    "Responses": {str(value) for value in vars(events).values() if str(value).startswith("response.")},
    "chat": {events.CHAT_TOOL_PROGRESS, events.CHAT_APPROVAL_REQUEST, events.CHAT_APPROVAL_RESPONDED},
    "runs": {str(event) for event in RunEvent},
    "sessions": {str(event) for event in SessionEvent},
}

# The names of Hermes' own server, by the headings below which the page has to have them; ~ is a space.
THEIRS = {
    "## Routes": """
        GET~/health GET~/v1/health GET~/health/detailed GET~/v1/models GET~/v1/capabilities GET~/api/model/options
        POST~/v1/chat/completions POST~/v1/responses GET~/v1/responses/{response_id} DELETE~/v1/responses/{response_id}
        POST~/v1/runs GET~/v1/runs/{run_id} GET~/v1/runs/{run_id}/events POST~/v1/runs/{run_id}/approval
        POST~/v1/runs/{run_id}/steer POST~/v1/runs/{run_id}/stop GET~/v1/skills GET~/v1/toolsets
        GET~/api/sessions POST~/api/sessions GET~/api/sessions/{session_id} PATCH~/api/sessions/{session_id}
        DELETE~/api/sessions/{session_id} GET~/api/sessions/{session_id}/messages POST~/api/sessions/{session_id}/fork
        POST~/api/sessions/{session_id}/chat POST~/api/sessions/{session_id}/chat/stream
        POST~/api/sessions/{session_id}/model GET~/api/jobs POST~/api/jobs GET~/api/jobs/{job_id}
        PATCH~/api/jobs/{job_id} DELETE~/api/jobs/{job_id} POST~/api/jobs/{job_id}/pause POST~/api/jobs/{job_id}/resume
        POST~/api/jobs/{job_id}/run POST~/api/cron/fire POST~/api/platforms/{platform}/events
        POST~/v1/browser-control/register GET~/v1/browser-control/ws POST~/v1/artifacts/upload
        GET~/v1/artifacts/download/{artifact_id} GET~/api/status /v1/room-members/ /p/{profile}
    """,
    "## Headers": """
        Authorization X-Hermes-Session-Id X-Hermes-Session-Key Idempotency-Key Idempotency-Replayed Origin
        X-Hermes-Completed X-Hermes-Partial X-Hermes-Error Retry-After Access-Control-Allow-Origin
        Access-Control-Allow-Methods Access-Control-Allow-Headers Access-Control-Max-Age Vary Content-Type Cache-Control
        X-Accel-Buffering X-Content-Type-Options Referrer-Policy Content-Security-Policy X-Frame-Options
        Permissions-Policy Strict-Transport-Security X-XSS-Protection Sec-WebSocket-Protocol
    """,
    "## Events": """
        :~keepalive :~open :~stream~closed response.created response.output_item.added response.output_text.delta
        response.output_text.done response.output_item.done response.completed response.failed
        response.reasoning_text.delta hermes.tool.progress approval.request hermes.status message.delta reasoning.delta
        reasoning.available tool.started tool.completed approval.responded run.completed run.failed run.cancelled
        run.interrupted run.steered subagent.start subagent.complete message.interim replay.truncated run.started
        message.started assistant.delta tool.progress tool.failed assistant.completed assistant.commentary error done
        tool.completed.preview usage.cache_* turn_exit_reason
    """,
    "## Errors": """
        unsupported_content_type invalid_image_url invalid_content_part invalid_content_length invalid_idempotency_key
        invalid_api_key gateway_auth_failed run_not_found session_not_found idempotency_key_conflict approval_not_active
        approval_not_pending run_not_accepting_steer steer_not_accepted run_not_active session_exists
        model_lock_unavailable session_active_turn body_too_large rate_limit_exceeded server_error agent_incomplete
        gateway_draining session_db_unavailable invalid_approval_choice invalid_approval_request invalid_session_id
        invalid_title invalid_system_prompt unsupported_session_field missing_model invalid_steer_input
        model_options_failed
    """,
    "### Runs": """
        session_id conversation_history instructions input status last_event output usage error approval pending_steer
        choice request_id all resolve_all
    """,
    "### Sessions": """
        source title include_hidden include_children limit offset include_compacted _lineage_root_id order message
        system_message runtime author
    """,
    "## Variables": """
        API_SERVER_ENABLED API_SERVER_HOST API_SERVER_PORT API_SERVER_KEY API_SERVER_CORS_ORIGINS API_SERVER_MODEL_NAME
        GATEWAY_HEALTH_URL GATEWAY_HEALTH_TIMEOUT GATEWAY_PROXY_URL HERMES_HOME HERMES_MAX_ITERATIONS HERMES_API_TIMEOUT
        HERMES_API_CALL_STALE_TIMEOUT HERMES_STREAM_READ_TIMEOUT HERMES_STREAM_STALE_TIMEOUT
        HERMES_LOCAL_STREAM_STALE_TIMEOUT HERMES_STREAM_RETRIES HERMES_STREAM_STALE_GIVEUP HERMES_AGENT_TIMEOUT
        WHATSAPP_REPLY_PREFIX WHATSAPP_MODE WHATSAPP_ALLOWED_USERS WHATSAPP_DM_POLICY WHATSAPP_GROUP_POLICY
        WHATSAPP_FORWARD_OWNER_MESSAGES WHATSAPP_SEND_READ_RECEIPTS WHATSAPP_MAX_MESSAGE_LENGTH WHATSAPP_CHUNK_DELAY_MS
        WHATSAPP_SEND_TIMEOUT_MS WHATSAPP_DEBUG
    """,
    "## Keys of config.yaml": """
        model model.provider model.default model.base_url model.api_key model.api_mode model.context_length
        anthropic_messages bedrock_converse codex_app_server fallback_providers providers request_timeout_seconds
        stale_timeout_seconds mcp_servers platforms.api_server.enabled platforms.api_server.host
        platforms.api_server.port platforms.api_server.key platforms.api_server.cors_origins
        platforms.api_server.model_name platforms.api_server.model_routes platforms.api_server.direct_model_requests
        platforms.api_server.max_concurrent_runs platforms.api_server.history_tool_output_max_chars
        platforms.api_server.tool_progress_events gateway.api_server gateway.platforms.api_server
        display.platforms.api_server.show_reasoning platform_toolsets.api_server agent.local_stream_stale_timeout
        whatsapp.reply_prefix _config_version
    """,
}

Row = list[str]


def rows(heading: str) -> list[Row]:
    """The rows of the table below a heading, without its first two lines."""
    section = PAGE.partition(f"\n{heading}\n")[2]
    table = re.search(r"((?:^\|.*\n)+)", section, re.MULTILINE)
    assert table is not None, heading
    found = []
    for line in table[1].splitlines()[2:]:
        found.append([cell.strip() for cell in line.removeprefix("|").removesuffix("|").split(" | ")])
    return found


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def is_served(route: str) -> bool:
    method, _, path = route.partition(" ")
    return method in allowed_methods(re.sub(r"\{\w+\}", "x", path.partition("?")[0]), routes)


@pytest.mark.parametrize(
    "heading",
    ["## Routes", "### Responses", "### Chat completions", "### Runs", "### Sessions", "## Headers", "## Variables"],
)
def test_every_row_has_one_of_the_four_verdicts(heading: str) -> None:
    found = rows(heading)
    assert len(found) > 5
    assert {row[1] for row in found} <= VERDICTS


@pytest.mark.parametrize("heading", THEIRS)
def test_everything_that_hermes_has_is_named(heading: str) -> None:
    section = PAGE.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    names = [name.replace("~", " ") for name in THEIRS[heading].split()]
    missing = [name for name in names if f"`{name}`" not in section]
    assert missing == []


def test_a_route_is_served_exactly_if_the_page_has_it() -> None:
    for route, verdict, *_ in rows("## Routes"):
        [name] = named(route)
        assert is_served(name) == (verdict != "not there"), name


def test_every_other_route_that_the_page_names_is_served() -> None:
    listed = {named(row[0])[0] for row in rows("## Routes")}
    others = set(re.findall(r"`((?:GET|POST|PATCH|DELETE) /[^` ]+)`", PAGE)) - listed
    assert len(others) > 8
    for route in others:
        assert is_served(route), route


def test_a_variable_is_read_exactly_if_the_page_has_it() -> None:
    for variable, verdict, *_ in rows("## Variables"):
        [name] = named(variable)
        is_read = f"\n| `{name}` |" in CONFIGURATION
        assert is_read == (verdict != "not there"), name


def test_every_variable_that_the_page_recommends_is_read() -> None:
    theirs = {named(row[0])[0] for row in rows("## Variables")}
    others = set(re.findall(r"`((?:HERMES|API_SERVER|GATEWAY|WHATSAPP)_[A-Z_]+)(?:=\w+)?`", PAGE)) - theirs
    assert len(others) > 5
    for name in others:
        assert f"`{name.removesuffix('_FILE')}` |" in CONFIGURATION, name


def nested(path: str) -> dict[str, Any]:
    first, _, rest = path.partition(".")
    return {first: nested(rest) if rest else {}}


def test_a_key_of_the_configuration_has_no_effect_exactly_if_the_page_has_it_so() -> None:
    for key, verdict, text in rows("## Keys of config.yaml"):
        [path] = named(key)
        config = nested(path)
        assert (path in ignored_keys(config)) == (verdict == "not there" or "stops the start: " in text), path
        problems = [section.problem(given, name) for name, section, given in sections(config)]
        assert any(problems) == ("stops the start: " in text), path


def test_an_event_is_sent_exactly_if_the_page_has_it() -> None:
    for stream, cell, verdict, text in rows("## Events"):
        sent = STREAMS.get(stream, set())
        for name in named(cell):
            if verdict in ("same", "better") and not name.startswith(":"):
                assert name in sent, name
            if verdict == "not there":
                assert name not in sent, name
        for name in re.findall(r"`(response\.[a-z_.]+|hermes\.[a-z.]+)`", text):
            assert name in sent, name


def test_every_error_that_the_page_has_here_is_documented() -> None:
    for theirs, ours in rows("## Errors"):
        cell = theirs if ours.startswith("same") else ours
        for code in re.findall(r"`([a-z_]+)`", cell):
            if code not in ("param", "server_error"):
                assert f"`{code}`" in ERRORS, code


def test_every_header_of_ours_is_one_that_pages_may_send_or_read() -> None:
    known = (ALLOWED_HEADERS + EXPOSED_HEADERS).decode().lower()
    names = set(re.findall(r"`(X-Hermes-[A-Za-z-]+)[:`]", PAGE))
    assert len(names) > 10
    for name in names:
        assert name.lower() in known, name
