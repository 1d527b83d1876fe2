"""Settings: read from the environment and ``HERMES_HOME/config.yaml``, checked at once."""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from gateway_app.config import logs, redis
from gateway_app.config.config_file import check_config, default_provider
from gateway_app.config.databases import POOLERS, read_database
from gateway_app.config.environment import Env, read_config
from gateway_app.config.home import open_home
from gateway_app.config.known_keys import ignored_keys
from gateway_app.config.mcp import read_mcp_servers
from gateway_app.config.model_options import read_options
from gateway_app.config.models import API_MODES, Model, read_models
from gateway_app.config.network import check_access, is_loopback, read_allowed_hosts
from gateway_app.config.platforms import read_platforms
from gateway_app.config.presets.registry import PRESETS
from gateway_app.config.profiles import read_profiles
from gateway_app.config.secrets import kept_secret, shared_secret
from gateway_app.config.terminal import read_limits
from gateway_app.config.versions import version_notice
from gateway_app.config.web_hosts import read_web_hosts
from gateway_app.config.whatsapp import read_whatsapp

BASE_DIR = Path(__file__).resolve().parent.parent
HERMES_VERSION = "0.1.0"

# HERMES_DEGRADED: why the server stores data in a temporary folder; it is empty otherwise.
HERMES_HOME, HERMES_DEGRADED = open_home(os.environ, BASE_DIR / "var")
_config_file = read_config(HERMES_HOME / "config.yaml")
HERMES_CONFIG_NOTICE = version_notice(_config_file)
HERMES_CONFIG = check_config(_config_file, os.environ)
HERMES_IGNORED_KEYS = ignored_keys(HERMES_CONFIG)
env = Env(os.environ, HERMES_CONFIG)

# --- who may connect -------------------------------------------------------------------
API_SERVER_HOST = env.text("API_SERVER_HOST", "127.0.0.1")
API_SERVER_PORT = env.integer("API_SERVER_PORT", 8642, low=1, high=65535)
HERMES_AUTH = env.choice("HERMES_AUTH", "on", ("on", "off"))
HERMES_PUBLIC_URL = env.web_origin("HERMES_PUBLIC_URL")
# No other machine can reach the server, neither directly nor through a proxy in front of it.
IS_PRIVATE = is_loopback(API_SERVER_HOST) and not HERMES_PUBLIC_URL
API_SERVER_KEY = env.secret("API_SERVER_KEY") or kept_secret(HERMES_HOME / "api_key", prefix="hs-")
API_SERVER_CORS_ORIGINS = env.origins("API_SERVER_CORS_ORIGINS")
# Signs logins and seals content: several machines need the same one.
SECRET_KEY = shared_secret(env) or kept_secret(HERMES_HOME / "secret_key", random_bytes=48)
DEBUG = False
ALLOWED_HOSTS = read_allowed_hosts(
    env.text("API_SERVER_ALLOWED_HOSTS"), API_SERVER_HOST, HERMES_PUBLIC_URL
)
if HERMES_PUBLIC_URL:
    CSRF_TRUSTED_ORIGINS = [HERMES_PUBLIC_URL]
if HERMES_PUBLIC_URL.startswith("https:"):
    # A public address means a proxy. A client that bypasses it can only lie about its own TLS.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
check_access(
    is_auth_off=HERMES_AUTH == "off",
    is_private=IS_PRIVATE,
    address=HERMES_PUBLIC_URL or API_SERVER_HOST,
    key=API_SERVER_KEY,
    allowed_hosts=ALLOWED_HOSTS,
    cors_origins=API_SERVER_CORS_ORIGINS,
)
HERMES_OPEN_MONITORING = env.choice("HERMES_OPEN_MONITORING", "off", ("on", "off")) == "on"
HERMES_PROBES_MODELS = True  # at the start of `serve`, in the background
HERMES_SOCKET_SECS = 3600.0  # as long as OpenAI keeps a WebSocket open
HERMES_IDLE_SECS = 60.0  # without a byte, between two requests or within one
HERMES_HEAD_SECS = 20.0  # from the first byte of a request: single bytes can't hold a connection
HERMES_BODY_SECS = 300.0  # from the end of its headers; the largest body takes 270 s at 300 kbit/s
HERMES_UNAUTHENTICATED_BYTES = 32_000_000  # of all bodies without a valid key: forms of the pages
HERMES_MAX_CONNECTIONS = env.integer("HERMES_MAX_CONNECTIONS", 12_000, low=1, high=1_000_000)
HERMES_JOIN_RETRIES = env.choice("HERMES_JOIN_RETRIES", "on", ("on", "off")) == "on"
MAX_BODY_BYTES = 10_000_000  # as a Hermes API server accepts
HERMES_CLIENT_WRITE_TIMEOUT = env.seconds("HERMES_CLIENT_WRITE_TIMEOUT", 30, low=0.1, high=3600)

# --- the model -------------------------------------------------------------------------
HERMES_PROVIDERS = {"builtin": "gateway_app.providers.builtin.provider.BuiltinProvider"}
for _name in PRESETS:
    HERMES_PROVIDERS[_name] = "gateway_app.providers.openai.provider.OpenAIProvider"
HERMES_PROVIDER = env.choice(
    "HERMES_PROVIDER",
    default_provider(env),
    tuple(HERMES_PROVIDERS),
    config_path="model.provider",
)
HERMES_BASE_URL = env.text("HERMES_BASE_URL", config_path="model.base_url")
HERMES_API_KEY = env.secret("HERMES_API_KEY", config_path="model.api_key")
HERMES_MODEL = env.text("HERMES_MODEL", config_path="model.default")
HERMES_API_MODE = env.choice(
    "HERMES_API_MODE", API_MODES[0], API_MODES, config_path="model.api_mode"
)
HERMES_CONNECT_TIMEOUT = env.seconds("HERMES_CONNECT_TIMEOUT", 10, low=0.1, high=600)
HERMES_WRITE_TIMEOUT = env.seconds("HERMES_WRITE_TIMEOUT", 30, low=0.1, high=600)
# None: the address of each model's server decides, see config.upstream_limits.
HERMES_STREAM_READ_TIMEOUT = env.optional_seconds(
    "HERMES_STREAM_READ_TIMEOUT", low=0.1, high=86_400
)
HERMES_STREAM_STALE_TIMEOUT = env.optional_seconds(
    "HERMES_STREAM_STALE_TIMEOUT", low=0.1, high=86_400
)
HERMES_MODEL_LOADING_SECS = env.seconds("HERMES_MODEL_LOADING_SECS", 60, low=0, high=3600)
HERMES_STREAM_RETRIES = env.integer("HERMES_STREAM_RETRIES", 2, low=0, high=10)
# The first answers; the others take over, in this order, where it fails.
HERMES_MODELS: tuple[Model, ...] = read_models(
    {
        "provider": HERMES_PROVIDER,
        "model": HERMES_MODEL,
        "base_url": HERMES_BASE_URL,
        "api_key": HERMES_API_KEY,
        "api_mode": HERMES_API_MODE,
        "options": read_options(HERMES_CONFIG["model"], "config.yaml: model"),
    },
    HERMES_CONFIG.get("fallback_models"),
    tuple(HERMES_PROVIDERS),
)
HERMES_PROFILES = read_profiles(
    HERMES_CONFIG.get("profiles"), HERMES_MODELS, tuple(HERMES_PROVIDERS)
)
HERMES_CONTEXT_LENGTH = env.integer(
    "HERMES_CONTEXT_LENGTH", 0, low=0, high=100_000_000, config_path="model.context_length"
)
# Of the context window: a longer conversation is replaced by its summary; 0 means never.
HERMES_COMPACT_SHARE = env.share("HERMES_COMPACT_SHARE", 0.8)
HERMES_MAX_ITERATIONS = env.integer("HERMES_MAX_ITERATIONS", 90, low=1, high=10_000)
HERMES_CONTEXT_LIMITS = "gateway_app.runtime.context_limits.limits_of"
HERMES_READABLE_ITEMS = "gateway_app.runtime.file_texts.readable_items"
HERMES_CORE_PROMPT = env.choice("HERMES_CORE_PROMPT", "on", ("on", "off")) == "on"
HERMES_UNKNOWN_MODEL = env.choice("HERMES_UNKNOWN_MODEL", "reject", ("reject", "default"))
API_SERVER_MODEL_NAME = env.text(
    "API_SERVER_MODEL_NAME", "hermes-agent", config_path="platforms.api_server.model_name"
)
if not API_SERVER_MODEL_NAME:
    raise ImproperlyConfigured("API_SERVER_MODEL_NAME must not be empty.")

# --- tools -----------------------------------------------------------------------------
HERMES_TERMINAL = env.choice("HERMES_TERMINAL", "sandboxed", ("sandboxed", "unsandboxed", "off"))
HERMES_TERMINAL_LIMITS = read_limits(env)
HERMES_FILE_URLS = env.choice("HERMES_FILE_URLS", "refuse", ("refuse", "pass"))
HERMES_WEB_FETCH = read_web_hosts(env.text("HERMES_WEB_FETCH"))
HERMES_WORKSPACES = env.choice("HERMES_WORKSPACES", "pinned", ("pinned", "shared"))
HERMES_WORKSPACE_SECS = env.seconds("HERMES_WORKSPACE_SECS", 60, low=1, high=86_400)
HERMES_APPROVAL_TIMEOUT = env.seconds("HERMES_APPROVAL_TIMEOUT", 3600, low=1, high=2_592_000)
HERMES_TOOL_ITEMS = env.choice("HERMES_TOOL_ITEMS", "auto", ("auto", "function_call", "mcp_call"))
HERMES_TOOL_NAMES = "gateway_app.runtime.agents.tool_names"
HERMES_UNSEEN_ITEMS = "gateway_app.runtime.visibility.unseen_items"
HERMES_WORKSPACE_HOST = "gateway_app.runtime.workspaces.host_elsewhere"
HERMES_UNSENT_FIELDS = "gateway_app.runtime.visibility.unsent_fields"
HERMES_TOOL_MAKERS = ["gateway_app.tools.builtin_tools"]
try:
    HERMES_MCP_SERVERS = read_mcp_servers(HERMES_CONFIG)
except ValueError as error:
    raise ImproperlyConfigured(str(error)) from error
HERMES_MCP_START_SECS = env.seconds("HERMES_MCP_START_SECS", 10, low=0, high=600)
# The server_label values with which a request asks for the server's tools.
HERMES_TOOL_LABELS = ("hermes", *[server.label for server in HERMES_MCP_SERVERS])

# --- messaging platforms ---------------------------------------------------------------
HERMES_PLATFORM_ADAPTERS = {
    "whatsapp": "gateway_app.platforms.whatsapp.adapter.make_adapter",
    "fake": "gateway_app.platforms.fake.FakePlatform",
}
HERMES_PLATFORMS = read_platforms(HERMES_CONFIG, HERMES_PLATFORM_ADAPTERS)
HERMES_WHATSAPP = read_whatsapp(env)
HERMES_SETTLING_HOOK = "gateway_app.platforms.replies.store_reply"
HERMES_PLATFORM_POLL_SECS = 1.0  # how often each process looks for messages of the others
HERMES_BRIDGE_REPLY_SECS = 2.0  # a bridge that does not reply three times in a row is replaced
HERMES_SENDING_SECS = 60.0  # a message whose sender died is sent again after this time

# --- how work is run -------------------------------------------------------------------
HERMES_LEASE_SECS = env.seconds("HERMES_LEASE_SECS", 10, low=1, high=3600)
HERMES_SWEEP_SECS = env.seconds("HERMES_SWEEP_SECS", 1, low=0.05, high=60)
# How late a reader is when another process writes and its hint is lost, or a key is revoked there.
HERMES_POLL_SECS = 1.0
HERMES_MAX_CONCURRENT = env.integer("HERMES_MAX_CONCURRENT", 256, low=1, high=10_000)
HERMES_RECOVERY = env.choice("HERMES_RECOVERY", "resume", ("resume", "incomplete"))
HERMES_MAX_ATTEMPTS = env.integer("HERMES_MAX_ATTEMPTS", 3, low=1, high=100)
HERMES_TURN_TIMEOUT = env.seconds("HERMES_TURN_TIMEOUT", 3600, low=1, high=604_800)
HERMES_MAX_STORED_RESPONSES = env.integer(
    "HERMES_MAX_STORED_RESPONSES", 0, low=0, high=1_000_000_000
)
HERMES_RETENTION_DAYS = env.integer("HERMES_RETENTION_DAYS", 0, low=0, high=36_500)
HERMES_UNATTENDED_MINUTES = env.minutes("HERMES_UNATTENDED_MINUTES", 60, low=0, high=1_000_000)
HERMES_SHUTDOWN_GRACE = env.seconds("HERMES_SHUTDOWN_GRACE", 20, low=0, high=3600)
GATEWAY_HEALTH_URL = env.web_address("GATEWAY_HEALTH_URL")
GATEWAY_HEALTH_TIMEOUT = env.seconds("GATEWAY_HEALTH_TIMEOUT", 3, low=0.1, high=60)
GATEWAY_HEALTH_KEY = env.secret("GATEWAY_HEALTH_KEY")

# --- Django ----------------------------------------------------------------------------
INSTALLED_APPS = [
    "daphne",
    "gateway_app",  # before Channels, whose runworker it replaces
    "channels",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular_sidecar",
    "responses_app",
    "gateway_app.operations.dashboard",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "gateway_app.operations.dashboard.security.ContentSecurityPolicy",
    "gateway_app.operations.dashboard.login_throttle.LoginThrottle",
]
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        # One counter for each address and user name that failed to log in.
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}
ROOT_URLCONF = "hermes_site.urls"
ASGI_APPLICATION = "hermes_site.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
APPEND_SLASH = False  # a redirect turns an SDK's POST into an error
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
FORMAT_MODULE_PATH = "hermes_site.formats"
STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True  # no collectstatic step between clone and run
WHITENOISE_AUTOREFRESH = False

HERMES_DATABASE_TIMEOUT = env.seconds("HERMES_DATABASE_TIMEOUT", 10, low=0.5, high=3600)
HERMES_DATABASE_POOL = env.integer("HERMES_DATABASE_POOL", 10, low=1, high=1000)
_default_database, _reason = read_database(
    env.secret("DATABASE_URL") or f"sqlite:///{HERMES_HOME / 'hermes.sqlite3'}",
    HERMES_DATABASE_TIMEOUT,
    HERMES_DATABASE_POOL,
    env.choice("HERMES_DATABASE_POOLER", "none", POOLERS),
)
DATABASES = {"default": _default_database}
HERMES_DEGRADED = HERMES_DEGRADED or _reason

REDIS_URL = redis.check_redis_url(env.secret("REDIS_URL"))
CHANNEL_LAYERS = redis.channel_layers(REDIS_URL, SECRET_KEY)
HERMES_DISPATCH = redis.read_dispatch(env, REDIS_URL)
HERMES_DISPATCHER = redis.dispatcher_name(HERMES_DISPATCH, REDIS_URL)
HERMES_WORKER_PORT = env.integer("HERMES_WORKER_PORT", 8643, low=1, high=65535)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["responses_app.api.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["responses_app.api.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["responses_app.api.parsers.JSONObjectParser"],
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "responses_app.api.renderers.OneFormat",
    "EXCEPTION_HANDLER": "responses_app.api.exceptions.openai_error",
    "UNAUTHENTICATED_USER": None,
}

# --- browser sessions ------------------------------------------------------------------
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = not IS_PRIVATE and not HERMES_PUBLIC_URL.startswith("http:")
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
# TLS ends at the proxy in front of the server, which also redirects and sends HSTS.
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008", "security.W012", "security.W016"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    }
]
LOGGING = logs.LOGGING
