"""What the checks find: Django's check messages, and one more kind for what works."""

from django.core import checks


class Ok(checks.CheckMessage):
    """Something that works. Only ``doctor`` prints it; for Django's ``check`` it is silenced."""

    def __init__(self, subject: str, text: str) -> None:
        super().__init__(checks.DEBUG, text, obj=subject)

    def is_silenced(self) -> bool:
        return True
