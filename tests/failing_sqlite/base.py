"""SQLite whose nth COMMIT from now on fails, where ``HERMES_HOME/fail_commit`` says which; the disk is to blame."""

import os
from pathlib import Path

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError


class DatabaseWrapper(base.DatabaseWrapper):
    def commit(self) -> None:
        if self.connection is not None and self.connection.in_transaction and _is_due():
            raise OperationalError("disk I/O error")
        super().commit()


def _is_due() -> bool:
    wish = Path(os.environ["HERMES_HOME"]) / "fail_commit"
    if not wish.exists():
        return False
    left = int(wish.read_text()) - 1
    if left > 0:
        wish.write_text(str(left))
    else:
        wish.unlink()
    return left == 0
