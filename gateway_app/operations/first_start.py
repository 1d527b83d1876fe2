"""The first start: an admin login beside the generated key, and a line to try."""

from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model

from gateway_app.config.secrets import kept_secret

ADMIN_NAME = "admin"
PASSWORD_BYTES = 12
LOGIN_FILE = "admin_login"


def ensure_admin() -> bool:
    """Make the first admin if there is none; True when one was made."""
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return False
    # Kept first: nobody would know the password of a login that is made and then can't be written down.
    name, password = kept_secret(
        settings.HERMES_HOME / LOGIN_FILE, f"{ADMIN_NAME} ", PASSWORD_BYTES
    ).split()
    users.create_superuser(name, password=password)
    return True


def greeting(*, shows_secrets: bool) -> str:
    """What the server prints once it listens."""
    url = (
        settings.HERMES_PUBLIC_URL
        or f"http://{settings.API_SERVER_HOST}:{settings.API_SERVER_PORT}"
    )
    key_file = settings.HERMES_HOME / "api_key"
    is_generated = key_file.exists() and key_file.read_text().strip() == settings.API_SERVER_KEY
    login_file = settings.HERMES_HOME / LOGIN_FILE
    bearer = f"$(cat {_shown(key_file)})" if is_generated else "$API_SERVER_KEY"
    lines = [
        f"Hermes Site {settings.HERMES_VERSION} on {url}",
        f"  API key      {_secret(key_file, shows_secrets) if is_generated else 'as set in API_SERVER_KEY'}",
        f"  admin login  {_secret(login_file, shows_secrets)}, at {url}/admin/",
        "Try it:",
        f'curl -N {url}/v1/responses -H "Authorization: Bearer {bearer}" '
        """-H 'Content-Type: application/json' -d '{"input": "Write 300 words slowly", "stream": true}'""",
    ]
    if settings.HERMES_DEGRADED:
        lines.insert(0, warning())
    return "\n".join(lines)


def warning() -> str:
    where = (
        settings.DATABASES["default"]["NAME"]
        if "sqlite" in settings.DATABASES["default"]["ENGINE"]
        else ""
    )
    kept = f"Responses are kept in {where}" if where else f"Keys are kept in {settings.HERMES_HOME}"
    remedy = "which may be gone after a reboot. Correct it and start again."
    return f"DEGRADED: {settings.HERMES_DEGRADED}. {kept}, {remedy}"


def _secret(path: Path, shows_secret: bool) -> str:
    if not path.exists():
        return "as you set it"
    return (
        f"{path.read_text().strip()}  (kept in {_shown(path)})"
        if shows_secret
        else f"in {_shown(path)}"
    )


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
