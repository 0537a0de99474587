"""Settings of the tests: one line per difference."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

# Each process that runs tests has a folder of its own; what a test starts inherits that.
if "LAB_STATE_DIR" not in os.environ or os.environ.get("LAB_TESTS_IN", "") != os.environ.get(
    "PYTEST_XDIST_WORKER", ""
):
    os.environ["LAB_TESTS_IN"] = os.environ.get("PYTEST_XDIST_WORKER", "")
    os.environ["LAB_STATE_DIR"] = tempfile.mkdtemp(prefix="lab-test-")
    atexit.register(shutil.rmtree, os.environ["LAB_STATE_DIR"], ignore_errors=True)
os.environ.setdefault("LAB_SECRET_KEY", "tests-only-" + "k" * 40)

from labsite.database import chosen
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
DATABASES["default"]["TEST"] = {
    "NAME": f"lab_test_{os.getpid()}" if chosen() else STATE_DIR / "test.sqlite3"
}
RUNS_LAB = "tests.fakes.tripwire"
