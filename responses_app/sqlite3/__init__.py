"""Django's backend for SQLite, with less work around each statement."""
