"""The first start makes a key and a login; where it ends half way, the next one completes it."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.exceptions import ImproperlyConfigured

from gateway_app.operations.first_start import LOGIN_FILE, ensure_admin

pytestmark = pytest.mark.django_db


def test_no_login_is_made_that_cannot_be_used(tmp_path: Path, settings: Any) -> None:
    """As on a full disk, or in a start that is killed there: the file comes before the login."""
    settings.HERMES_HOME = tmp_path
    (tmp_path / LOGIN_FILE).mkdir()
    with pytest.raises(ImproperlyConfigured, match=LOGIN_FILE):
        ensure_admin()
    assert not get_user_model().objects.exists()


def test_a_start_that_died_behind_the_file_is_completed(tmp_path: Path, settings: Any) -> None:
    settings.HERMES_HOME = tmp_path
    (tmp_path / LOGIN_FILE).write_text("admin kept-from-then\n")
    assert ensure_admin()
    assert authenticate(username="admin", password="kept-from-then") is not None
    assert not ensure_admin()


def test_a_login_is_kept_for_its_owner_alone(tmp_path: Path, settings: Any) -> None:
    settings.HERMES_HOME = tmp_path
    assert ensure_admin()
    name, password = (tmp_path / LOGIN_FILE).read_text().split()
    assert authenticate(username=name, password=password) is not None
    assert (tmp_path / LOGIN_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [LOGIN_FILE]
