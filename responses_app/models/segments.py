from django.db import models

FORMAT_VERSION = 1


class Codec(models.IntegerChoices):
    PLAIN = 0, "plain"
    ZLIB = 1, "zlib"


class EventSegment(models.Model):
    """A range of one response's events as ready-made SSE bytes.

    Written only by ``eventlog``. While a response runs, each commit adds one; when it has ended,
    they are merged and compressed.
    """

    response = models.ForeignKey(
        "responses_app.Response",
        on_delete=models.CASCADE,
        related_name="segments",
        db_index=False,  # the constraint has one, and each index costs a page per row and commit
    )
    attempt = models.PositiveIntegerField()
    first_position = models.PositiveIntegerField()
    last_position = models.PositiveIntegerField()
    # Sequence numbers of the public events inside; both are equal when there are none.
    first_sequence = models.PositiveIntegerField()
    next_sequence = models.PositiveIntegerField()
    is_final = models.BooleanField(default=False)
    format_version = models.PositiveSmallIntegerField(default=FORMAT_VERSION)
    codec = models.PositiveSmallIntegerField(choices=Codec.choices, default=Codec.PLAIN)
    # "last position:epoch milliseconds" of each commit, comma-separated: merging keeps the times.
    commit_marks = models.TextField()
    frames = models.BinaryField()

    class Meta:
        constraints = [
            # read_after() walks it; a second writer of the same position fails on it.
            models.UniqueConstraint(
                fields=["response", "first_position"], name="segment_position_is_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.response_id} {self.first_position}–{self.last_position}"
