"""The operators' view of what is stored: history is read, never edited."""

from responses_app.admin import keys, responses, sessions

__all__ = ["keys", "responses", "sessions"]
