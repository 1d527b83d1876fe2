"""Daphne with what this project needs around it; nothing durable depends on it."""
