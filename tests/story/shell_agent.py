"""An agent without a model: it runs the shell lines of its issue, those that begin with `run: `."""

from __future__ import annotations

from pathlib import Path

# The first line that fails ends it; the last line of its log says how it ended. Then it stays open.
_AGENT = """
lines="$LAB_RUN_FOLDER/lines.sh"
labctl issue view "$LAB_ISSUE" | sed -n 's/^run: //p' >"$lines"
sh -ex "$lines" >"{logs}/$LAB_ISSUE.log" 2>&1
echo "ended with $?" >>"{logs}/$LAB_ISSUE.log"
while read -r line; do :; done
"""


def write_agent(folder: Path) -> list[str]:
    """Write it into a folder, where its logs will be too; returns how a profile starts it."""
    folder.mkdir()
    script = folder / "agent.sh"
    script.write_text(_AGENT.format(logs=folder))
    return ["sh", str(script), "{prompt}"]


def body_of(script: str) -> str:
    """The text of an issue that has these lines run."""
    return "".join(f"run: {line}\n" for line in script.strip().splitlines())
