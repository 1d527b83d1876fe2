"""Made-up responses for a database to try things on; see the command ``seed_responses``."""
