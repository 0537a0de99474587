"""Which files a project may bring along into its worktrees: where they may lie, and how large they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence

MOST_FILES = 50
MOST_BYTES = 256 * 1024
MOST_CHARACTERS = 300  # of a path
MOST_SECRETS = 200  # values of one file that are kept out of what labsite shows
_NAME_BYTES = 255
NO_TEXT = f"It is no text of at most {MOST_BYTES // 1024} KB."
SHOWN_LINES = 20
# git reads these in every folder: one that is not committed would change what it ignores or follows.
_READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules"})
_GIT = frozenset({".git", "git~1"})


def normalise_path(path: str) -> str:
    """Return a path as it is stored: without spaces around it and without `./` before it."""
    return path.strip().removeprefix("./")


def why_unfit_path(path: str) -> str:
    """Return why no file may be written at a path inside a worktree; empty when one may."""
    if not path:
        return "Enter a path inside the repository, such as .env."
    if len(path) > MOST_CHARACTERS:
        return f"Use at most {MOST_CHARACTERS} characters."
    if not path.isprintable() or "\\" in path:
        return "Use only letters that can be seen, and / between folders."
    if path.startswith(("/", "~")):
        return "Enter a path inside the repository, such as .env: it begins with no / or ~."
    if path.endswith("/"):
        return "This names a folder. Enter the path of a file."
    return _why_unfit_parts(path.split("/"))


def _why_unfit_parts(parts: Sequence[str]) -> str:
    if ".." in parts:
        return "The file has to stay inside the worktree: leave out the dots (..)."
    if "" in parts or "." in parts:
        return "Leave out empty parts and single dots between the slashes."
    if any(part != part.strip() for part in parts):
        return "No folder or file may begin or end with a space."
    if any(len(part.encode()) > _NAME_BYTES for part in parts):
        return f"The name of a folder or file has at most {_NAME_BYTES} bytes."
    if any(part.casefold() in _GIT for part in parts):
        return "Nothing is written into .git."
    if parts[-1].casefold() in _READ_BY_GIT:
        return f"git reads {parts[-1]} by itself. Commit it to the repository."
    return ""


def why_unfit_content(text: str) -> str:
    """Return why a text cannot be the content of a file; empty when it can."""
    if not text:
        return "Paste the content of the file."
    if "\0" in text:
        return "Only text can be pasted."
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "Only text can be pasted."
    if size > MOST_BYTES:
        return f"A file has at most {MOST_BYTES // 1024} KB; this one has {-(-size // 1024)} KB."
    return ""


def why_too_secret(values: int) -> str:
    """Return why a file with so many secret values cannot be kept; empty when it can."""
    if values <= MOST_SECRETS:
        return ""
    return (
        f"The file holds {values} values that look secret. labsite keeps at most {MOST_SECRETS} of "
        "one file out of what it shows: leave out what the project does not need."
    )


def why_in_the_way(path: str, others: Collection[str]) -> str:
    """Return why a file cannot stand beside the other files of a project; empty when it can.

    `others` are the paths of the files that stay; one of the same path is replaced.
    """
    for other in sorted(others):
        if path.startswith(f"{other}/"):
            return f"{other} is a file, so it cannot be a folder too."
        if other.startswith(f"{path}/"):
            return f"{path} is the folder of {other}, so it cannot be a file too."
    if path not in others and len(others) >= MOST_FILES:
        return f"A project has at most {MOST_FILES} files. Remove one first."
    return ""


def read_patterns(text: str) -> Sequence[str]:
    """Return the first patterns of a `.worktreeinclude`, as a page names them."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")][:SHOWN_LINES]
