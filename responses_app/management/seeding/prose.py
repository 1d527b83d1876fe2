"""Questions and answers: made-up, but with the words and lengths of real ones."""

import random

SUBJECTS = (
    "invoice",
    "parser",
    "garden",
    "query",
    "backup",
    "meeting",
    "recipe",
    "index",
    "budget",
)
VERBS = ("checks", "sends", "keeps", "merges", "explains", "plans", "reads", "moves", "compares")
OBJECTS = ("the report", "a copy", "each row", "its log", "the draft", "two files", "a list", "it")
ENDINGS = ("today", "in one step", "without a restart", "for every user", "as before", "by name")
QUESTIONS = ("How do I test", "Why is it slow to change", "Can you explain", "What replaces")


def question(source: random.Random) -> str:
    return f"{source.choice(QUESTIONS)} the {source.choice(SUBJECTS)} {source.choice(ENDINGS)}?"


def tokens(source: random.Random, count: int) -> list[str]:
    """An answer in the pieces in which a model sends it."""
    pieces: list[str] = []
    while len(pieces) < count:
        pieces.extend(["The", f" {source.choice(SUBJECTS)}", f" {source.choice(VERBS)}"])
        for word in (source.choice(OBJECTS) + " " + source.choice(ENDINGS)).split():
            pieces.append(f" {word}")
        pieces.append(". ")
    return pieces[:count]
