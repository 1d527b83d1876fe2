"""Chat Completions: another API for the same responses, and another view of the same log."""
