"""Django settings. One file; the environment changes what may change, and wrong values fail loudly."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from labsite import database, env, folders, plain
from labsite.queue import LabHuey
from runs.core.paths import Paths

if TYPE_CHECKING:
    from runs.remote.link import Link

ROOT = Path(__file__).resolve().parent.parent
STATE_DIR = env.state_dir()
PATHS = Paths(STATE_DIR)


def _secret_key(paths: Paths) -> str:
    """LAB_SECRET_KEY, or the key kept in the state folder, made on first use.

    A damaged key file is kept beside and replaced: then logins end and stored tokens have to be
    typed again, but the product serves.
    """
    given = env.text("LAB_SECRET_KEY")
    if given:
        return given
    if paths.secret_key.exists() and not _kept_key(paths):
        paths.secret_key.replace(paths.secret_key.with_suffix(".key.damaged"))
    if not paths.secret_key.exists():
        _make_key(paths)
    return _kept_key(paths)


def _kept_key(paths: Paths) -> str:
    """The key in the state folder; empty when it cannot be read as one."""
    try:
        return plain.text_of(paths.secret_key)
    except (OSError, ValueError):
        return ""


def _make_key(paths: Paths) -> None:
    """Write a key aside and link it into place: of two processes one wins, and none reads half."""
    fresh = paths.secret_key.with_suffix(f".{os.getpid()}.new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(48))
    with contextlib.suppress(FileExistsError):
        paths.secret_key.hardlink_to(fresh)
    fresh.unlink()


# A process that only looks makes, mends and changes nothing (labsite/looking.py).
ONLY_LOOKS = os.environ.get("DJANGO_SETTINGS_MODULE") == "labsite.looking"
if not ONLY_LOOKS:
    folders.prepare(PATHS)
SECRET_KEY = (_kept_key(PATHS) or "-") if ONLY_LOOKS else _secret_key(PATHS)
DEBUG = env.flag("LAB_DEBUG")
HTTPS = env.flag("LAB_HTTPS")
HOST = env.text("LAB_HOST", "127.0.0.1")
PORT = env.number("LAB_PORT", 8420, 1, 65535)
SESSION_HOST = env.text("LAB_SESSION_HOST", "local", most=100)
ALLOWED_HOSTS = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    *([HOST] if HOST not in ("0.0.0.0", "::") else []),  # noqa: S104
    *env.words("LAB_ALLOWED_HOSTS"),
]

INSTALLED_APPS = [
    "django.contrib.admin.apps.SimpleAdminConfig",  # its pages are loaded with the addresses
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "huey.contrib.djhuey",
    "trackers.builtin",
    "runs",
]
MIDDLEWARE = [
    "runs.telemetry.requests.Requests",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "runs.web.answers.Compressed",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "runs.forges.quota_middleware.Ledger",
    "runs.overview.visit_middleware.Visits",
    "runs.web.access.LoginRequired",
    "runs.people.stepup.ConfirmSecrets",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "labsite.urls"
ASGI_APPLICATION = "labsite.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        "runs.web.unindented.Loader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "runs.web.chrome.context",
            ],
            "builtins": ["django.templatetags.static"],
            "libraries": {"lab": "runs.web.templatetags.lab"},
        },
    },
]
DATABASES = {"default": database.settings(database.chosen(), PATHS.database)}
# What a machine that joins is told beside the key.
TOLD_TO_HOSTS = {
    "LAB_DATABASE_URL": database.chosen(),
    "LAB_REDIS_URL": env.text("LAB_REDIS_URL"),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"


def _link() -> Link | None:
    """The connection to Redis where the product stands on several machines."""
    url = "" if ONLY_LOOKS else env.text("LAB_REDIS_URL").strip()
    if not url:
        return None
    from runs.remote import link as redis_link

    try:
        return redis_link.Link(url, SECRET_KEY, SESSION_HOST, STATE_DIR)
    except redis_link.Unfit as error:
        raise env.WrongSetting(str(error)) from None


def _queue() -> LabHuey:
    if REDIS is not None:
        from labsite.redis_queue import RedisLabHuey

        return RedisLabHuey(REDIS, is_web_alone=env.text("LAB_PART") == "web")
    file = ":memory:" if ONLY_LOOKS else str(PATHS.queue)
    try:
        return LabHuey("labsite", filename=file, immediate=False, results=False)
    except sqlite3.OperationalError as error:
        raise env.QueueBusy(
            f"The queue {PATHS.queue} cannot be opened ({error}): end whatever holds it (`fuser "
            f"{PATHS.queue}` names it), then start again. Nothing was changed."
        ) from error


REDIS = _link()
HUEY = _queue()

PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
LOGIN_URL = "runs:login"
LOGIN_REDIRECT_URL = "runs:overview"
LOGOUT_REDIRECT_URL = "runs:login"
PASSWORD_RESET_TIMEOUT = 60 * 60 * 24 * 3  # how long the link for a new person works

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = STATE_DIR / "static"
STATICFILES_DIRS = [ROOT / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_MANIFEST_STRICT = False

SESSION_COOKIE_NAME = "lab_session"
CSRF_COOKIE_NAME = "lab_csrf"
SESSION_COOKIE_AGE = 60 * 60 * 24 * 30
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
BEHIND_PROXY = env.flag("LAB_BEHIND_PROXY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$", r"^agent/"]
SECURE_REFERRER_POLICY = "same-origin"
CSRF_TRUSTED_ORIGINS = env.words("LAB_TRUSTED_ORIGINS")
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "runs.people.auth_views.csrf_failed"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
METRICS_TOKEN = env.text("LAB_METRICS_TOKEN", least=16).strip()
METRICS_PROJECTS = env.number("LAB_METRICS_PROJECTS", 50, 0, 500)
# Hosts of push services inside a network, with the port where it is not the usual one.
PUSH_HOSTS = env.words("LAB_PUSH_HOSTS")
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "lab": {
            "()": "labsite.logs.Formatter",
            "processors": "ext://labsite.logs.PROCESSORS",
            "foreign_pre_chain": "ext://labsite.logs.SHARED",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lab"}},
    "root": {"handlers": ["stderr"], "level": env.text("LAB_LOG_LEVEL", "INFO").upper()},
    "loggers": {
        # A handler of its own keeps run_huey from adding a second one that logs every task.
        "huey": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
        "daphne": {"level": "WARNING"},
        "django.channels.server": {"level": "WARNING"},
        "twisted": {"level": "WARNING"},
        "asyncio": {"level": "WARNING"},
        "autobahn": {"level": "WARNING"},
    },
}
SILENCED_SYSTEM_CHECKS = ["fields.W342"]
