"""The distinct values of a column, found by jumps in an index that begins with it."""

from django.db import connection, models

# SELECT DISTINCT would read an entry of the index for each row of the table.
_JUMPS = """
WITH RECURSIVE found(value) AS (
    SELECT MIN({column}) FROM {table}
    WHERE {column} IS NOT NULL
    UNION ALL
    SELECT (SELECT MIN({column}) FROM {table} WHERE {column} > found.value)
    FROM found WHERE found.value IS NOT NULL
)
SELECT value FROM found WHERE value IS NOT NULL LIMIT {limit}
"""


def distinct_values(model: type[models.Model], column: str, limit: int) -> list[str]:
    sql = _JUMPS.format(table=model._meta.db_table, column=column, limit=limit)
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [value for (value,) in cursor.fetchall()]
