"""Settings of the tests: one line per difference."""

from __future__ import annotations

import os
import tempfile

os.environ.setdefault("LAB_STATE_DIR", tempfile.mkdtemp(prefix="lab-test-"))
os.environ.setdefault("LAB_SECRET_KEY", "tests-only-" + "k" * 40)

from labsite.settings import *  # noqa: F403
from labsite.settings import DATABASES, HUEY, STATE_DIR

IS_TEST = True
HUEY.immediate = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_AUTOREFRESH = True
DATABASES["default"]["TEST"] = {"NAME": STATE_DIR / "test.sqlite3"}
RUNS_LAB = "tests.fakes.tripwire"
