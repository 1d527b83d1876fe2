"""Chat Completions: another door to the same responses, and another view of the same log."""
