"""The admin of everything that is stored. History can be read, not edited."""

from django.contrib import admin

from responses_app.admin import (
    idempotency,
    keys,
    notes,
    platforms,
    responses,
    sessions,
    tools,
    users,
)

__all__ = ["idempotency", "keys", "notes", "platforms", "responses", "sessions", "tools", "users"]

admin.site.enable_nav_sidebar = False  # lists of work are wide, and the start page has all of them
admin.site.site_header = admin.site.site_title = "Hermes Site"
