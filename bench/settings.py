"""The product's settings, with a model whose words are the times of their generation."""

from hermes_site import settings as product
from hermes_site.settings import *  # noqa: F403

HERMES_PROVIDERS = product.HERMES_PROVIDERS | {"builtin": "bench.model.ClockProvider"}
