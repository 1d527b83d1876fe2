"""Times as operators compare them: to the second, and in the order in which they sort."""

DATETIME_FORMAT = "Y-m-d H:i:s"
