from django.db import models
from django.db.models import OuterRef, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Left

EXCERPT_CHARS = 120


class InputItemQuerySet(models.QuerySet["InputItem"]):
    def excerpt(self) -> Subquery:
        """The start of the first user message, cut by the database: requests can be megabytes."""
        messages = self.filter(item__role="user").annotate(
            excerpt=Left(KT("item__content__0__text"), EXCERPT_CHARS)
        )
        return Subquery(messages.values("excerpt")[:1])


class InputItem(models.Model):
    """A new item of a request, in order; history is not repeated here."""

    response = models.ForeignKey(
        "responses_app.Response",
        on_delete=models.CASCADE,
        related_name="input_items",
        db_index=False,  # the constraint has one
    )
    position = models.PositiveIntegerField()
    item = models.JSONField()

    objects = InputItemQuerySet.as_manager()

    class Meta:
        constraints = [
            # input_items and context building read in this order.
            models.UniqueConstraint(
                fields=["response", "position"], name="input_position_is_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.response_id} input {self.position}"


def question_excerpt() -> Subquery:
    """For a query of responses: the beginning of the last user message."""
    return InputItem.objects.filter(response=OuterRef("pk")).order_by("-position").excerpt()


def opening_excerpt() -> Subquery:
    """For a query of sessions: the beginning of the first user message."""
    first = InputItem.objects.filter(response__session=OuterRef("pk"), response__turn=1)
    return first.order_by("position").excerpt()
