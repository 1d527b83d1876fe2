"""The operators' view of what is stored: history is read, never edited."""

from django.contrib import admin

from responses_app.admin import keys, responses, sessions, tools

__all__ = ["keys", "responses", "sessions", "tools"]

admin.site.site_header = admin.site.site_title = "Hermes Site"
