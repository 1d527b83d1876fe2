"""``manage.py`` on a host whose clock is off by ``TEST_CLOCK_SKEW_SECS``."""

import os
import sys
import time
from datetime import datetime, timedelta

from django.core.management import execute_from_command_line
from django.utils import timezone

SKEW_SECS = float(os.environ["TEST_CLOCK_SKEW_SECS"])
right_time, right_now = time.time, timezone.now


def skewed_time() -> float:
    return right_time() + SKEW_SECS


def skewed_now() -> datetime:
    return right_now() + timedelta(seconds=SKEW_SECS)


if __name__ == "__main__":
    time.time = skewed_time
    timezone.now = skewed_now
    execute_from_command_line(["manage.py", *sys.argv[1:]])
