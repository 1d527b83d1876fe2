"""Who sends a request: the user behind a bearer key or an operator's token."""

import hashlib
import hmac
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.core import signing
from django.db.models import QuerySet

from responses_app.database import database
from responses_app.models import ApiKey, Approver, Response, hash_key
from responses_app.models.compiled import CompiledQuery
from responses_app.models.recent import RecentlyRead
from responses_app.protocol.errors import Unauthenticated
from responses_app.sealing import NotSealedHere, seal, unseal
from responses_app.services.keys import KEY_ACTOR
from responses_app.services.lifecycle.approvals import Decider

SCHEME = "bearer "
# HTTP allows these around a header's value; Python strips others too, which a key may contain.
SPACES = " \t"
OPERATOR_PREFIX = "hso-"  # no key starts with it
OPERATOR_SECS = 3600
PLAYGROUND_PERMISSION = "responses_app.use_playground"
DECIDE_PERMISSION = "responses_app.decide_toolevent"
ROOT_ACTOR = f"{KEY_ACTOR}root"
UNKNOWN_ACTOR = "unauthenticated"  # under HERMES_AUTH=off
_OPERATOR_SALT = "responses_app.operator_token"


@dataclass(frozen=True)
class Principal:
    user: User  # owns what the caller makes
    key_id: int | None = None  # None is the root key, or an operator
    operator: str = ""
    # Over waiting tool calls; None for a caller without the root key under HERMES_AUTH=off.
    authority: Approver | None = None

    @property
    def owner_id(self) -> int:
        return self.user.pk

    @property
    def actor(self) -> str:
        """The caller's name in records of who did what."""
        if self.operator:
            return operator_actor(self.operator)
        if self.authority is None:
            return UNKNOWN_ACTOR
        return f"{KEY_ACTOR}{self.key_id or 'root'}"

    @property
    def decider(self) -> Decider:
        return Decider(self.actor, self.authority, self.user.pk)


def operator_actor(name: str) -> str:
    return f"operator {name}"


def operator_decider(user: User) -> Decider:
    """For staff pages, which check the permission to decide."""
    return Decider(operator_actor(user.get_username()), Approver.OPERATOR, user.pk)


def may_client_decide(row: Response, approver: str) -> bool:
    """Whether the key that made the request may decide about its calls."""
    if settings.HERMES_AUTH == "off":
        return False  # the request may have come without a key
    return approver == Approver.CLIENT or row.requested_by == ROOT_ACTOR


def authenticate(authorization: str | None) -> Principal:
    """The principal of an Authorization header, or ``Unauthenticated``."""
    secret = _bearer_secret(authorization)
    if secret and _is_root(secret):
        return Principal(root_owner(), authority=Approver.OPERATOR)
    if settings.HERMES_AUTH == "off" and not secret.startswith(OPERATOR_PREFIX):
        return Principal(root_owner())
    if not secret:
        raise missing_key()
    if secret.startswith(OPERATOR_PREFIX):
        return _operator(secret.removeprefix(OPERATOR_PREFIX))
    digest = hash_key(secret)
    return _recent_keys.get(digest, partial(_key_holder, digest))


def _key_holder(digest: str) -> Principal:
    valid = ApiKey.objects.valid().select_related("owner")
    key = valid.filter(digest=digest).first()
    if key is None:
        raise Unauthenticated("The API key is not valid, or it has been revoked.")
    if key.needs_touch:
        database.submit(partial(ApiKey.objects.touch, key.pk))
    return Principal(key.owner, key.pk, authority=Approver.CLIENT)


def missing_key() -> Unauthenticated:
    return Unauthenticated("Send your key as 'Authorization: Bearer <key>'.")


def is_root(authorization: str | None) -> bool:
    """Needs no database."""
    secret = _bearer_secret(authorization)
    return bool(secret) and _is_root(secret)


def _bearer_secret(authorization: str | None) -> str:
    """Empty if there is none."""
    if authorization is None or not authorization.lower().startswith(SCHEME):
        return ""
    return authorization[len(SCHEME) :].strip(SPACES)


def operator_token(user: User, session_key: str) -> str:
    """Access to the API for an hour, for a browser page of a staff user, who owns what it makes.

    Nothing is stored: the token ends with the hour, the login, the password or the user's rights.
    It is signed but readable; the session's key, which is as good as a login, is sealed in it.
    """
    sealed = seal(user.pk, session_key.encode())
    return OPERATOR_PREFIX + signing.dumps(
        [user.pk, user.get_session_auth_hash(), sealed], salt=_OPERATOR_SALT
    )


def _operator(token: str) -> Principal:
    try:
        user_id, password_hash, sealed = signing.loads(
            token, salt=_OPERATOR_SALT, max_age=OPERATOR_SECS
        )
        session_key = unseal(user_id, sealed).decode()
    except (signing.BadSignature, NotSealedHere, ValueError):
        raise Unauthenticated("The operator's token is not valid, or its hour is over.") from None
    user = User.objects.filter(pk=user_id, is_active=True, is_staff=True).first()
    if user is None or not _may_use(user, password_hash, session_key):
        raise Unauthenticated("The operator's token is not valid any more.")
    authority = Approver.OPERATOR if user.has_perm(DECIDE_PERMISSION) else Approver.CLIENT
    return Principal(user, operator=user.get_username(), authority=authority)


def _may_use(user: User, password_hash: str, session_key: str) -> bool:
    if not hmac.compare_digest(password_hash, user.get_session_auth_hash()):
        return False
    if not user.has_perm(PLAYGROUND_PERMISSION):
        return False
    # Logging out deletes the session.
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return bool(session.get(SESSION_KEY) == str(user.pk))


def _is_root(secret: str) -> bool:
    given = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
    root = hashlib.sha256(settings.API_SERVER_KEY.encode()).digest()
    return hmac.compare_digest(given, root)


def _admins() -> QuerySet[User]:
    return User.objects.filter(is_superuser=True, is_active=True).order_by("pk")[:1]


_first_admin = CompiledQuery(_admins)
_recent_keys: RecentlyRead[str, Principal] = RecentlyRead()  # by the digests of their secrets
_recent_admin: RecentlyRead[None, User | None] = RecentlyRead()


def root_owner() -> User:
    """The first admin owns what the root key makes."""
    owner = _recent_admin.get(None, _first_admin.instance)
    if owner is None:
        raise Unauthenticated(
            "There is no admin yet to own responses; start the server with 'make run' once."
        )
    return owner
