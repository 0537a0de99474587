"""What the Files page of a pull request and the page of one commit show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, QueryDict
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from runs.core.history_ports import Change
from runs.core.ports import SeamError
from runs.issues.pages import Context
from runs.models import Project
from runs.pulls import comparing, diff, pages, patches
from runs.pulls.comparing import Comparison
from runs.pulls.diff import FileDiff
from runs.web import code
from runs.wiring import lab
from trackers.builtin.models import PullComment

VIEWS = ("unified", "split")
COOKIE = "diff_view"
PAGE = 150
INLINE = 600  # lines that a page colours at once; later files come when they are scrolled to
FIRST = 8  # files with new comments that one refresh brings
MOVED = "New commits have come since this page was made. Load it again to see them."


@dataclass(frozen=True, slots=True)
class Wish:
    """What a reader asked the page to show, as its address and the cookie say it."""

    view: str = "unified"
    text: str = ""
    file: int = 0
    page: int = 1
    is_view_asked: bool = False

    @property
    def is_split(self) -> bool:
        return self.view == "split"

    def suits(self, change: Change) -> bool:
        """Whether a file is shown side by side: one with only one side never is."""
        return self.is_split and change.kind not in "AD"

    def address(self, **changes: Any) -> str:
        """The query string of this wish with something changed; always starts with `?`."""
        values = {"view": self.view, "q": self.text, "file": self.file, "page": self.page} | changes
        default = {"q": "", "file": 0, "page": 1}
        return "?" + urlencode({k: v for k, v in values.items() if v != default.get(k)})

    @property
    def unified(self) -> str:
        return self.address(view="unified")

    @property
    def split(self) -> str:
        return self.address(view="split")


def read_wish(request: HttpRequest) -> Wish:
    """The wish of an address; what makes no sense is as if it were not there."""
    sent = request.GET
    asked = sent.get("view", "")
    kept = request.COOKIES.get(COOKIE, "")
    view = next((one for one in (asked, kept) if one in VIEWS), VIEWS[0])
    return Wish(
        view,
        sent.get("q", "")[:200].replace("\0", "").strip(),
        _count(sent, "file", 0),
        max(1, _count(sent, "page", 1)),
        is_view_asked=asked in VIEWS,
    )


def files(project: Project, number: int, wish: Wish) -> Context:
    """The Files page. Raises NotFound, Http404."""
    context = pages.mergeable_frame(project, number, "files")
    comparison: Comparison = context["comparison"]
    chosen = _chosen(comparison, wish)
    here = chosen[_page(wish)]
    if wish.file and not chosen:
        raise Http404("This pull request has no such file.")
    at = reverse("runs:pull-files", args=[project.pk, number])
    shown = _shown(project, comparison, here, wish, at, _talk(context))
    live = urlencode({"head": comparison.ends.head, "after": _newest(context["comments"])})
    return {
        **context,
        "wish": wish,
        "choices": _choices(comparison, wish),
        "files": shown,
        "tree": diff.build_tree(shown),
        "total": len(comparison.files),
        "found": len(chosen),
        "earlier": wish.address(page=wish.page - 1) if wish.page > 1 else "",
        "later": wish.address(page=wish.page + 1) if len(chosen) > wish.page * PAGE else "",
        "live_url": f"{at}/live{wish.address()}&{live}",
    }


def news(project: Project, number: int, wish: Wish, sent: QueryDict) -> Context:
    """What a Files page that is open has to change: its frame, and files with new comments."""
    context = pages.mergeable_frame(project, number, "files")
    comparison: Comparison = context["comparison"]
    has_moved = bool(comparison.ends.head) and sent.get("head") != comparison.ends.head
    after = _count(sent, "after", 0)
    names = {c.path for c in context["comments"] if c.pk > after and c.path}
    on_page = [] if has_moved else _chosen(comparison, wish)[_page(wish)]
    talked = [(n, change) for n, change in on_page if change.path in names][:FIRST]
    talk = _talk(context)
    # In full: a reader may have opened what the page at first left out.
    shown = [_whole(project, change, n, wish, talk) for n, change in talked]
    return {
        **context,
        "wish": wish,
        "choices": _choices(comparison, wish),
        "moved": MOVED if has_moved else "",
        "regions": {f"file-{one.number}": ("web/_file_diff", {"file": one}) for one in shown},
    }


def form(project: Project, number: int, wish: Wish) -> Context:
    """What the form for a comment on a line needs. Raises NotFound."""
    context = pages.frame(project, number, "files")
    return {**context, "wish": wish, "choices": _choices(context["comparison"], wish)}


def one_file(project: Project, number: int, file: int, wish: Wish, sent: QueryDict) -> FileDiff:
    """One file in full. Raises NotFound, Http404; LookupError when the branch has moved on."""
    context = pages.frame(project, number, "files")
    comparison: Comparison = context["comparison"]
    if sent.get("commit"):
        commit = pages.commit_of(comparison, str(sent["commit"]))
        comparison = comparing.of_commit(lab(), project, commit)
    if sent.get("head") != comparison.ends.head or comparison.error:
        raise LookupError(comparison.error or MOVED)
    if not 1 <= file <= len(comparison.files):
        raise Http404("This pull request has no such file.")
    talk = {} if sent.get("commit") else _talk(context)
    return _whole(project, comparison.files[file - 1], file, wish, talk)


def commit(project: Project, number: int, ident: str, wish: Wish) -> Context:
    """One commit of a pull request with its files. Raises NotFound, Http404."""
    context = pages.frame(project, number, "commits")
    found = pages.commit_of(context["comparison"], ident)
    changes = comparing.of_commit(lab(), project, found)
    at = reverse("runs:pull-files", args=[project.pk, number])
    here = list(enumerate(changes.files, 1))[_page(wish)]
    if wish.file:
        here = [one for one in enumerate(changes.files, 1) if one[0] == wish.file]
    return {
        **context,
        "commit": found,
        "changes": changes,
        "wish": wish,
        "files": _shown(project, changes, here, wish, at, {}, commit=ident),
        "total": len(changes.files),
        "found": len(changes.files),
        "earlier": wish.address(page=wish.page - 1) if wish.page > 1 else "",
        "later": wish.address(page=wish.page + 1) if len(changes.files) > wish.page * PAGE else "",
    }


def _choices(comparison: Comparison, wish: Wish) -> list[tuple[int, str]]:
    """The files of this page, for the form that comments on a line."""
    here = _chosen(comparison, wish)[_page(wish)]
    return [(number, code.plain(change.path)) for number, change in here]


def _page(wish: Wish) -> slice:
    return slice((wish.page - 1) * PAGE, wish.page * PAGE)


def _chosen(comparison: Comparison, wish: Wish) -> list[tuple[int, Change]]:
    """The files that the reader wants to see, with their numbers."""
    numbered = list(enumerate(comparison.files, 1))
    if wish.file:
        return [one for one in numbered if one[0] == wish.file]
    text = wish.text.casefold()
    return [one for one in numbered if text in one[1].path.casefold()]


def _shown(
    project: Project,
    comparison: Comparison,
    here: Sequence[tuple[int, Change]],
    wish: Wish,
    at: str,
    talk: Mapping[str, Mapping[tuple[str, int], SafeString]],
    commit: str = "",
) -> list[FileDiff]:
    """These files: the first ones with their lines, later and big ones to be loaded on demand."""
    if len(here) == 1 and (wish.file or talk.get(here[0][1].path)):
        number, change = here[0]
        return [_whole(project, change, number, wish, talk)]
    sections = patches.sections(comparing.patch(lab(), project, comparison.ends)) if here else {}
    more = {
        "view": wish.view,
        "head": comparison.ends.head,
        **({"commit": commit} if commit else {}),
    }
    room, found = INLINE, []
    for number, change in here:
        load = f"{at}/{number}?{urlencode(more)}"
        section = sections.get(change.path, "")
        size = (change.added or 0) + (change.removed or 0)
        if size and (size > diff.BIG or room <= 0 or not section):
            is_soon = size <= diff.BIG
            one = FileDiff(change, number=number, load=load, is_open=is_soon)
        else:
            one = diff.file(change, section, number, room=diff.LINES)
            room -= len(one.lines)
            one = dataclasses.replace(one, is_open=True, load=load if one.is_cut else "")
        lines = talk.get(change.path, {})
        found.append(dataclasses.replace(one, is_split=wish.suits(change), talk=lines))
    return found


def _whole(
    project: Project,
    change: Change,
    number: int,
    wish: Wish,
    talk: Mapping[str, Mapping[tuple[str, int], SafeString]],
) -> FileDiff:
    try:
        section = comparing.patch_of(lab(), project, change)
        one, error = diff.file(change, section, number), ""
    except SeamError as failed:
        one, error = FileDiff(change, number=number), f"git could not show it: {failed}"
    lines = talk.get(change.path, {})
    return dataclasses.replace(
        one, is_open=True, is_split=wish.suits(change), talk=lines, error=error
    )


def _talk(context: Context) -> Mapping[str, Mapping[tuple[str, int], SafeString]]:
    """The comments on lines as they are now, by file and line."""
    found: dict[str, dict[tuple[str, int], SafeString]] = {}
    for comment in context["comments"]:
        if not comment.path or comment.commit != context["comparison"].ends.head:
            continue
        at = found.setdefault(comment.path, {})
        key = (comment.side, comment.line)
        html = render_to_string("pulls/_comment.html", {"comment": comment, "is_inline": True})
        at[key] = mark_safe(at.get(key, "") + html)  # noqa: S308  (both made by templates)
    return found


def _newest(comments: Sequence[PullComment]) -> int:
    return comments[-1].pk if comments else 0


def _count(sent: QueryDict, name: str, default: int) -> int:
    text = sent.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
