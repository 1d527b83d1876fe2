"""Who asks: the owner behind a bearer key."""

import hashlib
import hmac
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import get_user_model

from responses_app.errors import Unauthenticated
from responses_app.eventlog import event_store
from responses_app.models import ApiKey
from responses_app.models.keys import hash_key

SCHEME = "bearer "


@dataclass(frozen=True)
class Principal:
    owner_id: int
    key_id: int | None = None  # None is the root key
    is_authenticated: bool = True  # for REST framework's permission


def authenticate(authorization: str | None) -> Principal:
    """The principal of an Authorization header, or ``Unauthenticated``."""
    if settings.HERMES_AUTH == "off":
        return Principal(root_owner_id())
    if authorization is None or not authorization.lower().startswith(SCHEME):
        raise Unauthenticated("Send your key as 'Authorization: Bearer <key>'.")
    secret = authorization[len(SCHEME) :].strip()
    if _is_root(secret):
        return Principal(root_owner_id())
    key = ApiKey.objects.valid().filter(digest=hash_key(secret)).first()
    if key is None:
        raise Unauthenticated("The API key is not valid, or it has been revoked.")
    if key.needs_touch:
        event_store.submit(lambda: ApiKey.objects.touch(key.pk))
    return Principal(key.owner_id, key.pk)


def _is_root(secret: str) -> bool:
    given = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
    root = hashlib.sha256(settings.API_SERVER_KEY.encode()).digest()
    return hmac.compare_digest(given, root)


def root_owner_id() -> int:
    """The first admin owns what the root key makes."""
    admins = get_user_model().objects.filter(is_superuser=True, is_active=True)
    owner = admins.order_by("pk").values_list("pk", flat=True).first()
    if owner is None:
        raise Unauthenticated("There is no admin yet to own responses; start the server with 'make run' once.")
    return int(owner)
