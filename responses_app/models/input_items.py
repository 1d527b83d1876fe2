from django.db import models
from django.db.models import OuterRef, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Left

SHOWN_WORDS_CHARS = 120


class InputItemQuerySet(models.QuerySet["InputItem"]):
    def words(self) -> Subquery:
        """How the first message of a user begins, cut by the database: requests can be megabytes."""
        said = self.filter(item__role="user").annotate(
            words=Left(KT("item__content__0__text"), SHOWN_WORDS_CHARS)
        )
        return Subquery(said.values("words")[:1])


class InputItem(models.Model):
    """A new item of a request, in order; history is not repeated here."""

    response = models.ForeignKey(
        "responses_app.Response", on_delete=models.CASCADE, related_name="input_items"
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


def asked_words() -> Subquery:
    """Of a response: what was asked last."""
    return InputItem.objects.filter(response=OuterRef("pk")).order_by("-position").words()


def opening_words() -> Subquery:
    """Of a session: what it began with."""
    first = InputItem.objects.filter(response__session=OuterRef("pk"), response__turn=1)
    return first.order_by("position").words()
