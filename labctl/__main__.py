"""Entry for `python -I -S <root>/labctl`. Imports next to nothing before it knows the command."""

from __future__ import annotations

import os.path
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120


def main(arguments: list[str]) -> int:
    """Run one command; 0 done, 1 refused or failed, 2 wrong arguments. `hook` has its own codes."""
    if arguments[:1] == ["wake"]:
        from labctl import wake

        return wake.run(arguments[1:])
    if arguments[:1] == ["hook"]:
        from labctl import hook

        return hook.run(arguments[1:])
    from labctl import commands

    return commands.run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
