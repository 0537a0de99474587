"""Templates without the indentation of their lines: it is for who reads them, and no page shows it."""

from __future__ import annotations

import re

from django.template import Origin
from django.template.loaders import filesystem

INDENTATION = re.compile(r"\n[ \t]+")


class Loader(filesystem.Loader):
    """Reads our own templates; those of installed apps stay as they are.

    A row of a list stands twelve columns deep in its template, and a page has a hundred of them:
    with their indentation pages would be half as long again, and each push with them.
    """

    def get_contents(self, origin: Origin) -> str:
        return INDENTATION.sub("\n", super().get_contents(origin))
