"""Entry for `python -I -S <root>/labctl/__main__.py`. Imports next to nothing before it knows the command.

Without the name of the file it does the same, and Python loads `runpy` first.
"""

from __future__ import annotations

import os.path
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120


def main(arguments: list[str]) -> int:
    """Run one command; 0 done, 1 refused or failed, 2 wrong arguments. `hook`, `turns` have their own."""
    if arguments[:1] == ["wake"]:
        from labctl import wake

        return wake.run(arguments[1:])
    if arguments == ["hook", "session"]:
        from labctl import hook_session

        return hook_session.run()
    if arguments[:1] == ["hook"]:
        from labctl import hook

        return hook.run(arguments[1:])
    if arguments[:1] == ["emit"]:
        from labctl import loop_events

        return loop_events.run(arguments[1:])
    if arguments[:1] == ["ask"]:
        from labctl import loop_events

        return loop_events.ask(arguments[1:])
    if arguments[:1] == ["turns"]:
        from labctl import turns

        return turns.run(arguments[1:])
    from labctl import commands

    return commands.run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
