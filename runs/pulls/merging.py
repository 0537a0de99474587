"""Merges pull requests of the built-in tracker. Origin's branch is the truth; rows follow it.

Who merges what is noted before the branch is moved, so that a merge which was interrupted is
finished, or taken back, by whoever looks next: the button, or the sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from runs.core import writing
from runs.core.ports import Lab, Moved, Rejected, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.issues.acts import root_of
from runs.models import Project
from runs.projects import git_credentials, origin
from runs.pulls import mergeable, proof_rules, proofs, rules
from runs.pulls.rules import MergeCommit, MergeFacts, MergeKind, Way
from runs.timeline import announce
from trackers.base import PullState
from trackers.builtin import queries, store
from trackers.builtin.models import PullRequest

TRIES = 3
COMMITS = 250
SHOWN_TITLE = 200


class MergeRefused(ActRefused):
    """It was not merged; `files` are those in conflict."""

    def __init__(self, text: str, code: str, files: Sequence[str] = ()) -> None:
        super().__init__(text, code=code)
        self.files = tuple(files)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the person who merges had before them; empty where nothing was.

    `checks`: the state of the checks in spite of which it is to be merged.
    """

    head: str = ""
    into: str = ""
    checks: str = ""


NOTHING_SEEN = Seen()


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did."""

    number: int
    into: str
    commit: str
    closed: Sequence[int]


def merge(lab: Lab, project: Project, number: int, *, by: str, seen: Seen = NOTHING_SEEN) -> Merged:
    """Merge an open pull request: the base moves forward, or gets a merge commit.

    When head or target are others by now than those `seen`, or the checks are not as good as they
    were, nothing is merged.
    Exactly one of several that merge at once succeeds. Raises MergeRefused, NotFound, Refused,
    and SeamError when origin could not be asked.
    """
    root = root_of(project)
    head = queries.pull(root, number).head
    with suppress(SeamError):
        # What its run has pushed is brought first, so that what origin says after it stands.
        lab.repos.ref(project.repo(lab.paths), f"refs/heads/{head}")
    for _ in range(TRIES):
        origin.freshen(lab, project)
        pull = queries.pull(root, number)
        finished = _finish_interrupted(lab, project, pull)
        if finished is not None:
            raise _was_merged(queries.pull(root, number))
        pull = queries.pull(root, number)
        facts = mergeable.facts_of(lab, project, pull)
        _check(facts, pull, seen)
        _check_proof(project, facts, seen)
        try:
            return _merge(lab, project, pull, facts, by)
        except Moved:
            continue
    text = f"{facts.into} moved on origin again and again meanwhile. Nothing was merged. Try again."
    raise MergeRefused(text, code="moved")


def recover(lab: Lab, project: Project) -> int:
    """Finish or take back interrupted merges of a project; how many were finished.

    A part of the sweep, which waits for the network as a tick must not. Raises SeamError when
    origin does not answer; then everything stays as it is.
    """
    if project.tracker != "builtin" or not project.tracker_root.isdigit():
        return 0
    waiting = interrupted(lab.now()).filter(root_id=int(project.tracker_root))
    if not waiting.exists():
        return 0
    origin.freshen(lab, project)
    done = 0
    for pull in waiting:
        with suppress(MergeRefused):  # closed meanwhile, or taken over: theirs to tell
            done += bool(_finish_interrupted(lab, project, pull))
    return done


def notice_merged(lab: Lab, project: Project) -> int:
    """Settle open pull requests whose commits the base holds already; how many.

    Somebody merged them with git, on origin. By what was fetched last; nothing is asked of origin.
    """
    if project.tracker != "builtin" or not project.tracker_root.isdigit():
        return 0
    rows = PullRequest.objects.filter(
        root_id=int(project.tracker_root), state=PullState.OPEN, merge_at=None
    )
    return sum([_notice(lab, project, pull) for pull in rows])


def _notice(lab: Lab, project: Project, pull: PullRequest) -> bool:
    held = mergeable.held_by_base(lab, project, pull)
    if held is None:
        return False
    texts = _texts(lab, project, pull, pull.base_commit, pull.head_commit)
    with suppress(MergeRefused):  # somebody else was first
        _finish(lab, project, pull, by="", commit=held, base="", head=pull.head_commit, texts=texts)
        return True
    return False


def interrupted(now: datetime) -> QuerySet[PullRequest]:
    """Pull requests whose merge was begun so long ago that nobody can still be at it."""
    rows = PullRequest.objects.exclude(state=PullState.MERGED)
    return rows.filter(merge_at__isnull=False, merge_at__lt=now - mergeable.LAPSE)


def _check(facts: MergeFacts, pull: PullRequest, seen: Seen) -> None:
    """Raises MergeRefused unless it can be merged, as the person saw it."""
    said = rules.verdict(facts)
    if said.kind is MergeKind.MERGED:
        raise _was_merged(pull)
    if not said.can_merge:
        files = f" Files: {rules.files_words(said.files)}." if said.files else ""
        raise MergeRefused(
            f"{said.text}{files} Nothing was changed.", code=said.kind.value, files=said.files
        )
    if seen.head and seen.head != facts.head_tip:
        text = (
            f"New commits have come to {facts.head} since you looked. Nothing was merged. "
            "Look at them, then merge."
        )
        raise MergeRefused(text, code="head_moved")
    if seen.into and seen.into != facts.into:
        text = f"It would go into {facts.into} now. Nothing was merged. Look again, then merge."
        raise MergeRefused(text, code="base_moved")


def _check_proof(project: Project, facts: MergeFacts, seen: Seen) -> None:
    """Raises MergeRefused unless its checks passed, or the person merges in spite of how they are.

    What is in the base already cannot be kept out of it any more.
    """
    if facts.joined is not None and facts.joined.way is Way.HELD:
        return
    proof = proofs.load_proof(project, facts.head, facts.head_tip)
    only_passed = project.merges_only_passed
    text = proof_rules.explain_refusal(proof, seen.checks, only_passed=only_passed)
    if text:
        raise MergeRefused(text, code=f"checks_{proof.state}")


def _was_merged(pull: PullRequest) -> MergeRefused:
    who = f" by {pull.merge_by}" if pull.merge_by else ""
    text = f"Pull request {pull.number} was merged{who} already. Nothing was changed."
    return MergeRefused(text, code="merged")


def _merge(lab: Lab, project: Project, pull: PullRequest, facts: MergeFacts, by: str) -> Merged:
    """Note it, move the branch, tell it. Raises Moved when the branch is elsewhere by now."""
    head, seen = str(facts.head_tip), str(facts.into_tip)
    texts = _texts(lab, project, pull, seen, head)
    if facts.joined is not None and facts.joined.way is Way.HELD:
        return _finish(lab, project, pull, by=by, commit=seen, base="", head=head, texts=texts)
    commit = _commit(lab, project, pull, facts, by)
    root, at = project.tracker_root, lab.now()
    noted = store.begin_merge(
        root,
        pull.number,
        by=by,
        commit=commit,
        base=facts.into,
        ends=(seen, head),
        at=at,
        lapsed=at - mergeable.LAPSE,
    )
    if not noted:
        raise _lost(queries.pull(root, pull.number))
    repo = project.repo(lab.paths)
    try:
        token = git_credentials.of_git(lab, project)
        lab.repos.push_commit(repo, facts.into, commit, seen, token, project.url)
    except Moved:
        store.drop_merge(root, pull.number, commit=commit)
        raise
    except Rejected as error:
        store.drop_merge(root, pull.number, commit=commit)
        text = (
            f"Origin does not let labsite change {facts.into}: {error} Nothing was changed. "
            "Merge it where that is allowed, or allow it there."
        )
        raise MergeRefused(text, code="protected") from error
    except SeamError:
        _settle_unknown(lab, project, pull, facts, commit)
    pull = queries.pull(root, pull.number)
    return _finish(lab, project, pull, by=by, commit=commit, base=seen, head=head, texts=texts)


def _lost(pull: PullRequest) -> MergeRefused:
    """Somebody else was first."""
    if pull.state == PullState.MERGED:
        return _was_merged(pull)
    if pull.state == PullState.CLOSED:
        return MergeRefused("It was closed meanwhile. Nothing was merged.", code="closed")
    text = f"{pull.merge_by} is merging it just now. Nothing was changed by you."
    return MergeRefused(text, code="busy")


def _settle_unknown(
    lab: Lab, project: Project, pull: PullRequest, facts: MergeFacts, commit: str
) -> None:
    """After a push of which nothing is known: origin says whether it happened. Raises SeamError.

    When origin does not say either, the note stays and a later look settles it.
    """
    repo = project.repo(lab.paths)
    found = lab.repos.pushed(repo, facts.into, git_credentials.of_git(lab, project), project.url)
    if found != commit:
        store.drop_merge(project.tracker_root, pull.number, commit=commit)
        raise SeamError(
            f"origin could not be changed, so {pull.head} was not merged. Nothing was changed."
        )


def _commit(lab: Lab, project: Project, pull: PullRequest, facts: MergeFacts, by: str) -> str:
    """What the base shall name: the head itself, or a new merge commit."""
    head, seen = str(facts.head_tip), str(facts.into_tip)
    if facts.joined is not None and facts.joined.way is Way.FORWARD:
        return head
    repo = project.repo(lab.paths)
    tree = lab.repos.join(repo, seen, head).tree
    title = writing.one_line(pull.title, SHOWN_TITLE)
    message = f"Merge pull request #{pull.number} from {pull.head}\n\n{title}\n"
    return lab.repos.make_merge(repo, MergeCommit(tree, (seen, head), message, by, lab.now()))


def _finish_interrupted(lab: Lab, project: Project, pull: PullRequest) -> Merged | None:
    """Finish a merge that was noted and happened; take back one that did not, once it has lapsed.

    Origin has just been fetched. None when there is none to finish. Raises SeamError.
    """
    if pull.state == PullState.MERGED or pull.merge_at is None or not pull.merge_commit:
        return None
    repo = project.repo(lab.paths)
    try:
        happened = not lab.repos.is_ahead(repo, pull.merge_commit, pull.base)
    except SeamError:
        happened = False
        if lab.repos.tip(repo, f"{mergeable.REMOTE}{pull.base}") is None:
            raise
    if happened:
        base, head = pull.base_commit, pull.head_commit
        texts = _texts(lab, project, pull, base, head)
        return _finish(
            lab,
            project,
            pull,
            by=pull.merge_by,
            commit=pull.merge_commit,
            base=base,
            head=head,
            texts=texts,
        )
    if not mergeable.is_busy(pull, lab.now()):
        store.drop_merge(project.tracker_root, pull.number, commit=pull.merge_commit)
    return None


def _finish(
    lab: Lab,
    project: Project,
    pull: PullRequest,
    *,
    by: str,
    commit: str,
    base: str,
    head: str,
    texts: Sequence[str],
) -> Merged:
    """Rows and timeline in one transaction; safe to come to twice. Raises MergeRefused."""
    root, number, at = project.tracker_root, pull.number, lab.now()
    with transaction.atomic():
        if not store.finish_merge(root, number, by=by, commit=commit, at=at):
            known = queries.pull(root, number)
            if (known.merge_by, known.merge_commit) == (by, commit):
                return Merged(number, known.base, commit, ())  # another look finished it for us
            raise _was_merged(known)
        store.keep_ends(
            root, number, base_commit=base or pull.base_commit, head_commit=head or pull.head_commit
        )
        how = f"merged into {pull.base}" if base else f"found merged into {pull.base}"
        text = f"pull request {number} {how}: {writing.one_line(pull.title)}"
        announce.tell(lab, NoticeKind.PULL_MERGED, text, project=project, by=by)
        closed = _close_issues(lab, project, pull, by, texts)
    lab.bell.look(project.slug)
    return Merged(number, pull.base, commit, closed)


def _close_issues(
    lab: Lab, project: Project, pull: PullRequest, by: str, texts: Sequence[str]
) -> list[int]:
    """As forges do: only what reaches the default branch closes issues."""
    if pull.base != project.default_branch:
        return []
    wanted = rules.closing(texts)
    closed = store.close_issues(project.tracker_root, wanted, at=lab.now()) if wanted else []
    for number in closed:
        announce.tell(
            lab,
            NoticeKind.ISSUE_CHANGED,
            f"issue closed by pull request {pull.number}",
            project=project,
            issue_key=str(number),
            by=by,
        )
    return closed


def _texts(lab: Lab, project: Project, pull: PullRequest, base: str, head: str) -> list[str]:
    """Everything that may name an issue: title, text, and the messages of the commits."""
    texts = [pull.title, pull.body]
    try:
        commits = lab.repos.commits(project.repo(lab.paths), base, head, COMMITS)
    except SeamError:
        return texts  # the merge counts, whatever its commits say
    return [*texts, *(f"{one.subject}\n{one.body}" for one in commits)]
