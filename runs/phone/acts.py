"""What can be done from a notification: offered with it, done once, dead with its question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist

from runs.core import tokens
from runs.core.effects import PushOffer
from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, TrackerKind
from runs.lifecycle import stop
from runs.models import Notice, Project, PushAct, Run
from runs.notices import push_rules, pushes
from runs.notices.push_rules import PushVerb
from runs.people.roles import MAY_ACT
from runs.pulls import merging
from runs.waits import acts as waits
from trackers.base import PullState, TrackerError
from trackers.builtin.models import PullRequest

GO_ON = "Continue."
UNKNOWN = "This link is not known, or what it was for is gone. Nothing was changed."
USED = "This link was used already and works once. Nothing more was done."
LATE = "This link is too old. Nothing was changed; open labsite to see how things stand."
NOT_YOU = "You may not do this any more. Nothing was changed."
ENDED = "The run had ended already. Nothing was changed."


@dataclass(frozen=True, slots=True)
class Done:
    """How it went, in a sentence, and where to look."""

    ok: bool
    text: str
    url: str = ""


def may_act(user: User) -> bool:
    return user.is_active and user.has_perm(MAY_ACT)


def offers(lab: Lab, notice_id: int, user_id: int) -> Sequence[PushOffer]:
    """What a person may do about a notice as things stand now; nothing for who may only look."""
    user = User.objects.filter(pk=user_id).first()
    rows = Notice.objects.select_related("run__project", "project")
    notice = rows.filter(pk=notice_id).first()
    if user is None or notice is None or notice.run is None or not may_act(user):
        return ()
    if notice.kind == NoticeKind.RUN_WAITS:
        return _of_wait(lab, notice.run)
    if notice.kind == NoticeKind.PULL_OPENED:
        return _of_pull(notice.run)
    return ()


def _of_wait(lab: Lab, run: Run) -> Sequence[PushOffer]:
    if not run.is_waiting or run.waits_at is None:
        return ()
    place = f"{run.project.name} #{run.issue_key}"
    about = {"run": run.pk, "since": run.waits_at.isoformat()}
    found: list[PushOffer] = []
    form = waits.form(lab, run)
    if form is not None and form.choices:
        choices = [(one.digit, one.text) for one in form.choices]
        for verb, label, digit in zip(
            (PushVerb.ALLOW, PushVerb.DENY),
            ("Allow", "Deny"),
            push_rules.allow_and_deny(choices),
            strict=True,
        ):
            if digit is not None:
                text = dict(choices)[digit]
                words = f"Answer the agent of {place}: {digit}. {text}"
                told = {**about, "mark": form.mark, "digit": digit}
                found.append(PushOffer(verb, label, words, told))
    elif form is not None and form.has_text:
        words = f"Tell the agent of {place}: {GO_ON}"
        found.append(PushOffer(PushVerb.CONTINUE, "Continue", words, about))
    words = f"Stop the run of {place}. Its worktree and branch are kept."
    return [*found, PushOffer(PushVerb.STOP, "Stop", words, about)]


def _of_pull(run: Run) -> Sequence[PushOffer]:
    project = run.project
    if project.tracker != TrackerKind.BUILTIN or run.pull_number is None:
        return ()
    rows = PullRequest.objects.filter(root_id=int(project.tracker_root), state=PullState.OPEN)
    pull = rows.filter(number=run.pull_number).first()
    if pull is None or not pull.head_commit:
        return ()
    words = f"Merge pull request {pull.number} of {project.name} into {pull.base}: {pull.title}"
    about = {"project": project.pk, "number": pull.number, "head": pull.head_commit}
    return [PushOffer(PushVerb.MERGE, "Merge", words, about)]


def find(lab: Lab, token: str) -> PushAct | None:
    """The act that a link stands for, with its person; None for a link that nobody knows."""
    rows = PushAct.objects.select_related("user", "delivery")
    return rows.filter(digest=tokens.hash_token(token)).first()


def dead(lab: Lab, row: PushAct | None, asker: User | None = None) -> str:
    """Why a link does nothing any more, in a sentence; empty while it works."""
    if row is None:
        return UNKNOWN
    if row.used_at is not None:
        return f"{USED} {row.said}".strip()
    if row.expires_at <= lab.now():
        return LATE
    if (asker is not None and asker.pk != row.user_id) or not may_act(row.user):
        return NOT_YOU
    return _gone(row)


def _gone(row: PushAct) -> str:
    """Why the question of a link is over, as far as rows say."""
    if row.act == PushVerb.MERGE:
        return ""  # the merge looks itself, at origin
    run = Run.objects.filter(pk=row.about["run"]).first()
    if run is None:
        return UNKNOWN
    if run.outcome:
        return ENDED
    is_same = run.waits_at is not None and run.waits_at.isoformat() == row.about["since"]
    return "" if run.is_waiting and is_same else waits.GONE_ON


def perform(lab: Lab, row: PushAct, asker: User | None = None) -> Done:
    """Do it, if nobody has and its question still stands: of several presses one is let through."""
    url = pushes.page_of(row.delivery)
    if said := dead(lab, row, asker):
        return Done(False, said, url)
    mine = PushAct.objects.filter(pk=row.pk, used_at=None, expires_at__gt=lab.now())
    if not mine.update(used_at=lab.now()):
        row.refresh_from_db()
        return Done(False, dead(lab, row, asker) or USED, url)
    try:
        done = _DO[PushVerb(row.act)](lab, row.about, row.user.get_username())
    except ActRefused as refused:
        done = Done(False, refused.text)
    except ObjectDoesNotExist:  # its project was removed with all its runs
        done = Done(False, UNKNOWN)
    except (SeamError, TrackerError) as error:
        done = Done(False, f"It was not done: {lab.mask(str(error))}")
    PushAct.objects.filter(pk=row.pk).update(said=done.text[:400])
    if done.ok:
        pushes.acted(lab, row.delivery)
    return Done(done.ok, done.text, url)


def _run(about: Mapping[str, Any]) -> Run:
    return Run.objects.select_related("project").get(pk=about["run"])


def _choose(lab: Lab, about: Mapping[str, Any], by: str) -> Done:
    since = datetime.fromisoformat(about["since"])
    waits.choose(lab, _run(about), about["digit"], since=since, mark=about["mark"], by=by)
    return Done(True, "Sent. The agent has its answer.")


def _continue(lab: Lab, about: Mapping[str, Any], by: str) -> Done:
    waits.say(lab, _run(about), GO_ON, since=datetime.fromisoformat(about["since"]), by=by)
    return Done(True, "Sent. The agent was told to continue.")


def _stop(lab: Lab, about: Mapping[str, Any], by: str) -> Done:
    if stop.stop(lab, _run(about), by):
        return Done(True, "Stopped. Worktree and branch are kept.")
    return Done(False, ENDED)


def _merge(lab: Lab, about: Mapping[str, Any], by: str) -> Done:
    project = Project.objects.get(pk=about["project"])
    done = merging.merge(lab, project, about["number"], by=by, seen=merging.Seen(about["head"]))
    return Done(True, f"Merged into {done.into}.")


_DO: Mapping[PushVerb, Callable[[Lab, Mapping[str, Any], str], Done]] = {
    PushVerb.ALLOW: _choose,
    PushVerb.DENY: _choose,
    PushVerb.CONTINUE: _continue,
    PushVerb.STOP: _stop,
    PushVerb.MERGE: _merge,
}
