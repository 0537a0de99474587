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
# Nobody is wrong who waits for a busy machine: several times what the product waits.
if chosen():
    DATABASES["default"]["TEST"] = {"NAME": f"lab_test_{os.getpid()}"}
    DATABASES["default"]["OPTIONS"] |= {
        "connect_timeout": "60",
        "options": "-c lock_timeout=60s -c statement_timeout=240s "
        "-c idle_in_transaction_session_timeout=240s",
    }
else:
    DATABASES["default"]["TEST"] = {"NAME": STATE_DIR / "test.sqlite3"}
    DATABASES["default"]["OPTIONS"]["timeout"] = 60
RUNS_LAB = "tests.fakes.tripwire"
