"""Docs that can't drift, and the shape of the code."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.urls import get_resolver

from gateway_app.config.known_keys import MCP_SERVER, MODEL, OPTION_KEYS, PROFILE, TOP_LEVEL
from gateway_app.config.presets.registry import PRESETS
from gateway_app.config.whatsapp import PREFIX_VARIABLE
from gateway_app.operations.doctor.model_trials import TRIALS
from gateway_app.tools import builtin_tools
from responses_app.protocol import builder as output
from responses_app.protocol import snapshot as fold
from tests.support.server import ROOT, Server

MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60
PACKAGES = ("hermes_site", "responses_app", "gateway_app", "tests", "bench")


def sources() -> list[Path]:
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return [path for path in found if "migrations" not in path.parts]


def read(name: str) -> str:
    return (ROOT / name).read_text()


def test_every_variable_is_documented() -> None:
    readers = read("hermes_site/settings.py") + read("gateway_app/config/terminal.py")
    for module in ("whatsapp", "redis", "secrets"):
        readers += read(f"gateway_app/config/{module}.py")
    names = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', readers)) | {"HERMES_HOME", PREFIX_VARIABLE}
    assert len(names) > 10
    documented = set(re.findall(r"^\| `([A-Z_]+)`", read("docs/configuration.md"), re.MULTILINE))
    assert names == {name for name in documented if not name.endswith("_FILE")}


def test_every_preset_is_documented_with_its_address() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| ([^|]+) \| (\w+) \|", read("docs/configuration.md"), re.MULTILINE)
    documented = {name: (address, key) for name, address, key in rows if name in PRESETS}
    assert list(documented) == list(PRESETS)
    lines = read("docs/models.md")
    for preset in PRESETS.values():
        address, key = documented[preset.name]
        assert address.startswith(f"`{preset.base_url}`" if preset.base_url else "none"), preset.name
        assert key == ("required" if preset.needs_key else "optional"), preset.name
        assert f"HERMES_PROVIDER={preset.name}\n" in lines, preset.name
        assert f"provider: {preset.name}" in lines, preset.name


def test_every_key_and_option_of_config_yaml_is_documented() -> None:
    text = read("docs/configuration.md")
    for key in (*TOP_LEVEL.keys, *OPTION_KEYS):
        assert f"| `{key}` |" in text, key
    for key in (*PROFILE.keys, *MODEL.keys, *MCP_SERVER.keys):
        assert f"`{key}`" in text, key


def test_every_kind_of_trial_is_documented() -> None:
    for kind in TRIALS:
        assert f"| `{kind}` |" in read("docs/commands.md"), kind


def test_every_command_is_documented() -> None:
    ours = {name for name, app in get_commands().items() if app in ("responses_app", "gateway_app")}
    documented = set(re.findall(r"^\| `(\w+)[^`]*` \|", read("docs/commands.md"), re.MULTILINE))
    assert ours <= documented


def test_every_tool_and_its_arguments_are_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", read("docs/tools.md"), re.MULTILINE))
    for name, tool in builtin_tools("unsandboxed").items():
        assert rows[name] == ", ".join(f"`{argument}`" for argument in tool.parameters["properties"]), name
        assert tool.parameters["additionalProperties"] is False, name


def all_docs() -> str:
    return "".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))


def test_every_route_is_documented() -> None:
    text = all_docs()
    for pattern in get_resolver().url_patterns:
        for inner in getattr(pattern, "url_patterns", []):
            route = str(inner.pattern)
            if route.startswith(("v1", "health", "api", "metrics")):
                path = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route)
                assert f"{path}`" in text, path


def test_every_event_and_error_code_is_documented() -> None:
    text = all_docs()
    for module in (fold, output):
        for kind in re.findall(r'"(response\.[a-z_.]+)"', Path(str(module.__file__)).read_text()):
            assert f"`{kind}`" in text or "mcp" in kind or "refusal" in kind, kind
    for path in (*(ROOT / "responses_app").rglob("*.py"), *(ROOT / "gateway_app").rglob("*.py")):
        for code in re.findall(r'\b(?:code|MALFORMED)(?:: str \| None)? ?= ?"(\w+)"', path.read_text()):
            if code not in ("not_found", "bad_request", "internal_error"):
                assert f"`{code}`" in text, code


def test_every_metric_is_documented() -> None:
    names = re.findall(r'"(hermes_\w+)"', read("responses_app/metrics.py"))
    assert len(names) > 10
    for name in names:
        assert re.search(rf"`{name}(_total)?(\{{[a-z,]+}})?`", read("docs/health.md")), name


def test_every_dependency_has_its_reason() -> None:
    text = read("docs/architecture.md")
    for line in (read("requirements.in") + read("requirements-dev.in")).splitlines():
        name = re.match(r"[A-Za-z][\w-]*", line)
        if name:
            assert name[0].lower() in text.lower(), name[0]


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_every_package_is_locked_with_its_hash(name: str) -> None:
    """pip refuses a file with hashes in which one package has none, and so would everything below it."""
    locked = re.findall(
        r"^([\w.-]+)(?:\[[\w,-]+\])?==\S+(.*?)(?=^[\w.-]|\Z)", read(f"{name}.txt"), re.DOTALL | re.MULTILINE
    )
    assert all("--hash=sha256:" in rest for _, rest in locked)
    packages = {package.lower().replace("_", "-") for package, _ in locked}
    asked = re.findall(r"^([A-Za-z][\w.-]*)", read(f"{name}.in"), re.MULTILINE)
    assert {package.lower().replace("_", "-") for package in asked} <= packages


def test_links_in_the_docs_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.any_database
def test_the_readme_works_as_written(server: Server, tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", read("README.md"), re.DOTALL)
    assert len(blocks) == 2
    script = "set -e\n" + "".join(blocks)
    script = script.replace("8642", str(server.port)).replace("var/api_key", str(server.home / "api_key"))
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert '"status":"in_progress"' in done.stdout
    seen = (tmp_path / "seen.txt").read_text()
    numbers = [int(number) for number in re.findall(r'"sequence_number":(\d+)', seen)]
    assert numbers == list(range(len(numbers)))
    assert seen.count("response.output_text.delta\n") == 100
    assert seen.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= MAX_FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < MAX_FUNCTION_LINES, node.name


@pytest.mark.parametrize(("page", "least"), [("docs/reliability.md", 40), ("SECURITY.md", 20)])
def test_every_promise_names_a_test_that_exists(page: str, least: int) -> None:
    named = re.findall(r"`((?:\w+/)?test_\w+\.py)`", read(page))
    assert len(named) >= least
    assert [path for path in named if not (ROOT / "tests" / path).exists()] == []
