"""The first start: an admin login beside the generated key, and a command to try."""

import shlex
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction

from gateway_app.config.network import http_url
from gateway_app.config.secrets import kept_secret

ADMIN_NAME = "admin"
PASSWORD_BYTES = 12
LOGIN_FILE = "admin_login"


def ensure_admin() -> bool:
    """Make the first admin if there is none; True when one was made."""
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return False
    # Stored first: if the file can't be written, there must be no login with an unknown password.
    name, password = kept_secret(
        settings.HERMES_HOME / LOGIN_FILE, f"{ADMIN_NAME} ", PASSWORD_BYTES
    ).split()
    try:
        with transaction.atomic():
            users.create_superuser(name, password=password)
    except IntegrityError:  # another web process, which starts at the same time
        return False
    return True


def greeting(models: str, *, shows_secrets: bool) -> str:
    """What the server prints once it listens; ``models`` are its lines about models."""
    address = http_url(settings.API_SERVER_HOST, settings.API_SERVER_PORT)
    url = settings.HERMES_PUBLIC_URL or address
    key_file = settings.HERMES_HOME / "api_key"
    is_generated = _holds(key_file, settings.API_SERVER_KEY)
    login_file = settings.HERMES_HOME / LOGIN_FILE
    bearer = "$API_SERVER_KEY"
    key = "as set in API_SERVER_KEY"
    if is_generated:
        bearer = f"$(cat {shlex.quote(_shown(key_file))})"
        key = _secret(key_file, shows_secrets)
    lines = [
        f"Hermes Site {settings.HERMES_VERSION} on {url}",
        models,
        f"  API key      {key}",
        f"  admin login  {_secret(login_file, shows_secrets)}, at {url}/admin/",
        f"  playground   {url}/chat, with the admin login",
        "  clients      docs/guide/README.md has the settings of each",
        "Try it:",
        f'curl -N {url}/v1/responses -H "Authorization: Bearer {bearer}" '
        """-H 'Content-Type: application/json' -d '{"input": "Write 300 words slowly", "stream": true}'""",
    ]
    return "\n".join(lines)


def warning() -> str:
    """For a server that stores data in a temporary folder."""
    database = settings.DATABASES["default"]
    kept = f"Keys are kept in {settings.HERMES_HOME}"
    if "sqlite" in database["ENGINE"]:
        kept = f"Responses are kept in {database['NAME']}"
    return (
        f"DEGRADED: {settings.HERMES_DEGRADED}. {kept}, which may be gone after a reboot. "
        "Change the owner of the folder (chown), or name another one (HERMES_HOME, DATABASE_URL), "
        "and start again."
    )


def _holds(path: Path, secret: str) -> bool:
    """False also for a file of another account: the start does not need it."""
    try:
        return path.read_text().strip() == secret
    except OSError:
        return False


def _secret(path: Path, shows_secret: bool) -> str:
    if not path.exists():
        return "as you set it"
    if shows_secret:
        return f"{path.read_text().strip()}  (kept in {_shown(path)})"
    return f"in {_shown(path)}"


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
