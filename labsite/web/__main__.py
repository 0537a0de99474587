"""Entry for `python -m labsite.web`, with daphne's own arguments."""

from __future__ import annotations

from labsite.web import bounds

bounds.install()
bounds.CommandLineInterface.entrypoint()
