"""The stored rows of a server, as a test looks at them behind its API."""

from typing import Any

from tests.support.server import Server, eventually

# Every other table is of responses_app.
APPS = {"runtimeprocess": "gateway_app", "workspacehome": "gateway_app", "user": "auth", "permission": "auth"}
ENDED_LONG_AGO = "2020-01-01 00:00:00+00:00"


def stored_rows(server: Server, table: str, *columns: str, order_by: str = "", **where: Any) -> list[tuple[Any, ...]]:
    """The columns of the rows whose columns have the given values."""
    conditions, values = _conditions(where)
    sql = f"SELECT {', '.join(columns)} FROM {_full_name(table)}{conditions}"
    if order_by:
        sql += f" ORDER BY {order_by}"
    return server.query(sql, *values)


def count_rows(server: Server, table: str, **where: Any) -> int:
    conditions, values = _conditions(where)
    [(count,)] = server.query(f"SELECT count(*) FROM {_full_name(table)}{conditions}", *values)
    return int(count)


def update_rows(server: Server, table: str, changes: dict[str, Any], **where: Any) -> int:
    """Changes rows behind the server's back; the number of rows."""
    conditions, values = _conditions(where)
    assignments = ", ".join(f"{column} = ?" for column in changes)
    sql = f"UPDATE {_full_name(table)} SET {assignments}{conditions}"
    return server.change(sql, *changes.values(), *values)


def status_of(server: Server, response_id: str) -> str:
    """Also of a response that the API does not return: one that is not stored or deleted."""
    [(status,)] = stored_rows(server, "response", "status", id=response_id)
    return str(status)


def session_of(server: Server, response_id: str) -> int:
    [(session_id,)] = stored_rows(server, "response", "session_id", id=response_id)
    return int(session_id)


def tool_calls(server: Server, response_id: str) -> list[tuple[Any, ...]]:
    """The name, status and output of each call that the server ran."""
    return stored_rows(server, "toolevent", "name", "status", "output", order_by="id", response_id=response_id)


def input_items(server: Server, response_id: str) -> int:
    """How many items the response has stored as its own input."""
    return count_rows(server, "inputitem", response_id=response_id)


def ids_with_input(server: Server, text: str) -> list[str]:
    """The responses whose own input has the text."""
    sql = "SELECT response_id FROM responses_app_inputitem WHERE CAST(item AS text) LIKE ?"
    return [response_id for (response_id,) in server.query(sql, f"%{text}%")]


def input_of_deleted(server: Server) -> int:
    """How many input items deleted responses still have."""
    sql = (
        "SELECT count(*) FROM responses_app_inputitem i JOIN responses_app_response r ON r.id = i.response_id "
        "WHERE r.deleted_at IS NOT NULL"
    )
    [(count,)] = server.query(sql)
    return int(count)


def add_grant(server: Server, response_id: str, tool: str, arguments_digest: str) -> None:
    """A lasting consent of the operator, for the owner of the response."""
    sql = (
        "INSERT INTO responses_app_approvalgrant"
        " (owner_id, session_id, name, arguments_digest, granted_by, created_at, approver)"
        " SELECT owner_id, NULL, ?, ?, 'key root', created_at, 'operator'"
        " FROM responses_app_response WHERE id = ?"
    )
    server.change(sql, tool, arguments_digest, response_id)


def until_merged(server: Server, response_id: str) -> None:
    """The sweep merges a log some seconds after its end, so the end is moved to the past."""
    update_rows(server, "response", {"finished_at": ENDED_LONG_AGO}, id=response_id)

    def is_merged() -> bool:
        return stored_rows(server, "response", "is_log_merged", id=response_id) == [(1,)]

    eventually(is_merged, 30, f"the merged log of {response_id}")


def key_owner(server: Server, name: str) -> str:
    [(owner_id,)] = stored_rows(server, "apikey", "owner_id", name=name)
    [(username,)] = stored_rows(server, "user", "username", id=owner_id)
    return str(username)


def admin_history(server: Server, object_id: str, model: str = "response") -> list[tuple[str, str]]:
    """What Django's admin has recorded about a row: the operator and the message of each change."""
    sql = (
        "SELECT u.username, l.change_message FROM django_admin_log l JOIN auth_user u ON u.id = l.user_id "
        "JOIN django_content_type t ON t.id = l.content_type_id "
        "WHERE l.object_id = ? AND t.model = ? ORDER BY l.id"
    )
    return [(name, message) for name, message in server.query(sql, object_id, model)]


def _full_name(table: str) -> str:
    return f"{APPS.get(table, 'responses_app')}_{table}"


def _conditions(where: dict[str, Any]) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    for column, value in where.items():
        if value is None:
            conditions.append(f"{column} IS NULL")
        else:
            conditions.append(f"{column} = ?")
            values.append(value)
    if not conditions:
        return "", values
    return f" WHERE {' AND '.join(conditions)}", values
