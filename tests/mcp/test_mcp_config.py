"""``mcp_servers`` is read strictly, and tools get names that models take."""

import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway_app.config.mcp import McpServer, read_mcp_servers
from gateway_app.tools.mcp.names import public_name
from gateway_app.tools.mcp.transport import redacted
from tests.support.mcp_harness import SERVER, is_alive
from tests.support.migrated_database import migrated_home
from tests.support.server import Server, copy_home, eventually, popen
from tests.support.settings_check import check_settings


def read(**servers: Any) -> tuple[McpServer, ...]:
    return read_mcp_servers({"mcp_servers": servers})


def test_both_kinds_of_servers_are_read_in_their_order() -> None:
    files, search = read(
        files={"command": "npx", "args": ["-y", "x"], "env": {"KEY": "value"}, "timeout": 60, "approval": "always"},
        off={"command": "gone", "enabled": False},
        search={"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer secret"}},
    )
    assert files == McpServer("files", "npx", ("-y", "x"), {"KEY": "value"}, timeout_secs=60, approval="always")
    assert (search.url, search.timeout_secs, search.approval) == ("https://example.org/mcp", 120, "none")
    assert search.headers == {"Authorization": "Bearer secret"}
    assert "secret" not in repr(search)
    assert "value" not in repr(files)
    assert read_mcp_servers({}) == read_mcp_servers({"mcp_servers": None}) == ()


@pytest.mark.parametrize(
    ("label", "entry", "problem"),
    [
        ("files", {"command": 7}, "mcp_servers.files.command must be text"),
        ("files", {"command": ""}, "mcp_servers.files.command must be text"),
        ("files", {"command": "a", "url": "http://b"}, "mcp_servers.files must have exactly one of command and url"),
        ("files", {"timeout": 3}, "mcp_servers.files must have exactly one of command and url"),
        ("files", {"command": "a", "args": "b"}, "mcp_servers.files.args must be a list"),
        ("files", {"command": "a", "args": ["b", 8080]}, r"mcp_servers.files.args\[1\] must be text"),
        ("files", {"command": "a", "env": {"PORT": 1}}, "mcp_servers.files.env.PORT must be text"),
        ("files", {"command": "a", "env": ["PORT"]}, "mcp_servers.files.env must be a mapping"),
        ("files", {"command": "a", "headers": {}}, "mcp_servers.files.headers does not go with command"),
        ("files", {"url": "http://a", "env": {}}, "mcp_servers.files.env does not go with url"),
        ("files", {"url": "ftp://a"}, "mcp_servers.files.url must be an http or https address"),
        ("files", {"url": "http://a", "headers": {"X": "a\nb"}}, "mcp_servers.files.headers.X must be printable"),
        ("files", {"url": "http://a", "headers": {"a b": "c"}}, "mcp_servers.files.headers has 'a b'"),
        ("files", {"command": "a", "timeout": 0}, "mcp_servers.files.timeout must be a number"),
        ("files", {"command": "a", "timeout": True}, "mcp_servers.files.timeout must be a number"),
        ("files", {"command": "a", "timeout": float("nan")}, "mcp_servers.files.timeout must be a number"),
        (
            "files",
            {"command": "a", "approval": "sometimes"},
            "mcp_servers.files.approval must be one of none, always, client",
        ),
        (
            "files",
            {"command": "a", "approval": ["always"]},
            "mcp_servers.files.approval must be one of none, always, client",
        ),
        ("files", {"command": "a", "enabled": "no"}, "mcp_servers.files.enabled must be true or false"),
        ("files", {"command": "a", "cmd": 1, "argv": 2}, "mcp_servers.files.cmd is unknown; write command"),
        ("files", "npx", "mcp_servers.files must be a mapping"),
        ("hermes", {"command": "a"}, "mcp_servers.hermes is the name of the server's own tools"),
        ("a.b", {"command": "a"}, "mcp_servers.a.b must be named with"),
        ("x" * 65, {"command": "a"}, "must be named with"),
        (7, {"command": "a"}, "mcp_servers.7 must be named with"),
    ],
)
def test_what_is_wrong_is_named(label: Any, entry: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^config.yaml: .*{problem}"):
        read_mcp_servers({"mcp_servers": {label: entry}})


def test_a_wrong_entry_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("mcp_servers: {files: {command: [npx]}}\n")
    assert "config.yaml: mcp_servers.files.command must be text" in check_settings(tmp_path).stderr.splitlines()[-1]
    (tmp_path / "config.yaml").write_text("mcp_servers: []\n")
    assert "config.yaml: mcp_servers must be a mapping" in check_settings(tmp_path).stderr.splitlines()[-1]
    (tmp_path / "config.yaml").write_text("mcp_servers: {files: {command: npx}}\n")
    assert check_settings(tmp_path).returncode == 0


def test_names_are_kept_where_models_take_them_and_unique_where_not() -> None:
    assert public_name("files", "read_file") == "files.read_file"
    assert public_name("a" * 32, "b" * 31) == "a" * 32 + "." + "b" * 31
    odd = ["a/b", "a b", "a.b", "", "ä", "b" * 64, "b" * 65, "\ud800"]
    labels = ["files", "x" * 64, "x" * 63 + "y"]
    names = [public_name(label, tool) for label in labels for tool in odd]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", name) and len(name) <= 64 for name in names)
    assert public_name("files", "a/b") == "files.a_b_1ace720c"


def test_secrets_of_the_configuration_are_not_repeated() -> None:
    server = McpServer("s", url="https://h/mcp?k=in-the-query", headers={"Authorization": "Bearer in-a-header"})
    reply = redacted(server, "bad token in-a-header at https://h/mcp?k=in-the-query; in-the-query is bad, too")
    assert reply == "bad token *** at https://h/mcp?***; *** is bad, too"


def test_without_servers_the_package_is_never_loaded(tmp_path: Path) -> None:
    code = "import sys, gateway_app.runtime.bootstrap; print('mcp' in sys.modules)"
    server = Server(tmp_path)
    server.launch = popen  # a forked one has all packages
    assert server.manage("shell", "-v0", "-c", code) == "False"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
def test_a_served_process_takes_its_children_with_it(templates: Path, tmp_path: Path, number: int) -> None:
    """SIGTERM is an orderly end; SIGKILL closes the pipes, which the children notice."""
    home = copy_home(migrated_home(templates), tmp_path / "home")
    note = tmp_path / "pid"
    script = f'echo $$ > {note}; exec "$0" "$@"'
    entry = {"command": "sh", "args": ["-c", script, sys.executable, SERVER, "stdio"]}
    (home / "config.yaml").write_text(json.dumps({"mcp_servers": {"files": entry}}))
    server = Server(home)
    try:
        server.start()
        eventually(lambda: "MCP server files is ready with 8 tools" in server.log, 30, "the MCP server's start")
        child = int(note.read_text())
        assert is_alive(child)
    finally:
        server.kill(number)
    assert number == signal.SIGKILL or not is_alive(child)
    eventually(lambda: not is_alive(child))
    assert "Traceback" not in server.log
