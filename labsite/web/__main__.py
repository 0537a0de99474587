"""Entry for `python -m labsite.web`, with daphne's own arguments."""

from __future__ import annotations

from daphne.cli import CommandLineInterface

from labsite.web import bounds

bounds.install()
CommandLineInterface.entrypoint()
