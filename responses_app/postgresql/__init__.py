"""Django's PostgreSQL backend, with a limit for every wait and a pool for requests."""
