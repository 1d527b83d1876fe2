"""Secrets that the first start generates and every later start reads."""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.environment import Env

SECRET_FILE_MODE = 0o600
MIN_SECRET_LENGTH = 32


def kept_secret(path: Path, prefix: str = "", random_bytes: int = 32) -> str:
    """The secret in a file that only its owner can read; generated on first use.

    The file appears complete or not at all, and the first writer wins: two processes that start
    together use the same secret.
    """
    if not path.exists():
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_FILE_MODE)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(prefix + secrets.token_urlsafe(random_bytes) + "\n")
                file.flush()
                os.fsync(descriptor)  # or the file could be empty after a loss of power
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was first; its secret is read below
        finally:
            draft.unlink()
    try:
        secret = path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"{path} cannot be read: {error.strerror}. "
            "Give it to the account that runs the server (chown)."
        ) from error
    if not secret:
        raise ImproperlyConfigured(
            f"{path} is empty. Restore the secret from a backup, "
            "or delete the file to have a new one generated."
        )
    return secret


def shared_secret(env: Env) -> str:
    """The secret that several machines share; empty where each keeps its own."""
    secret = env.secret("HERMES_SECRET_KEY")
    if secret and len(secret) < MIN_SECRET_LENGTH:
        raise ImproperlyConfigured(
            f"HERMES_SECRET_KEY must have at least {MIN_SECRET_LENGTH} characters."
        )
    return secret
