"""Profiles of a database of the version before, which wrote "all tools" as an empty list."""

from importlib import import_module
from pathlib import Path

from tests.support.migrated_database import Database
from tests.support.server import Server

MIGRATION = "0023_tools_and_approvals_by_request"
_IMPORT = "from responses_app.models import Profile; "
SHOW = _IMPORT + "print(*[row.toolset for row in Profile.objects.order_by('name')], sep='|')"
ADD_TOOLLESS = _IMPORT + "Profile.objects.create(name='x', toolset=[])"


def test_lists_of_the_version_before_keep_their_meaning(database: Database, tmp_path: Path) -> None:
    server = database.server(tmp_path / "home", Server)
    migration = import_module(f"responses_app.migrations.{MIGRATION}").Migration
    [(_, before)] = migration.dependencies
    server.manage("migrate", "--verbosity", "0", "responses_app", before)
    add = (
        "INSERT INTO responses_app_profile (name, provider, upstream_model, base_url, instructions, toolset, "
        "tool_items, fallback_models, is_enabled, created_at) "
        "VALUES (?, '', '', '', '', ?, '', '[]', TRUE, CURRENT_TIMESTAMP)"
    )
    server.change(add, "everything", "[]")
    server.change(add, "some", '["calculate"]')
    server.manage("migrate", "--verbosity", "0")
    assert server.manage("shell", "-v0", "-c", SHOW).split() == ["None|['calculate']"]
    server.manage(
        "shell", "-v0", "-c", "from responses_app.models import Profile; Profile.objects.create(name='x', toolset=[])"
    )
    server.manage("migrate", "--verbosity", "0", "responses_app", before)
    kept = server.query("SELECT name, toolset FROM responses_app_profile ORDER BY name")
    assert [str(toolset) for _, toolset in kept] in (
        ["[]", '["calculate"]', '["-"]'],
        ["[]", "['calculate']", "['-']"],  # as PostgreSQL's driver reads them
    )
    server.manage("migrate", "--verbosity", "0")
    assert server.manage("shell", "-v0", "-c", SHOW).split() == ["None|['calculate']|[]"]
