"""Entry for `python -m labsite.web`, with daphne's own arguments and `--idle-seconds`."""

from __future__ import annotations

from labsite.web import bounds, idle

bounds.install()
idle.install()
idle.CommandLine.entrypoint()
