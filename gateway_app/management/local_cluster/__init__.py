"""A cluster on one machine: engines, web processes, workers and a reverse proxy, as one command."""
