"""Whether the models answer, asked once at the start: a wrong address or key shows at once."""

import logging
import threading

from django.core import checks

from gateway_app.operations.doctor.remote import check_upstreams

logger = logging.getLogger(__name__)

BUILTIN_MODEL = "gateway_app.W016"  # the banner has it already
TIMEOUT_SECS = 5.0  # a model's server that is starting may take longer; the line is only a warning


def probe_models() -> None:
    """In a thread of its own: the server answers meanwhile."""
    threading.Thread(target=report_models, name="model-probe", daemon=True).start()


def report_models() -> None:
    for finding in check_upstreams(TIMEOUT_SECS):
        if finding.level >= checks.WARNING and finding.id != BUILTIN_MODEL:
            logger.warning("model: %s. %s", finding.msg, finding.hint)
