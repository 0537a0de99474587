"""What the page *Checks* of a run shows: its attempts side by side, and one of them in full."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import Http404
from django.urls import reverse

from runs.changed_files import check_files
from runs.changed_files.check_file_rules import Part
from runs.core.ports import Lab, Output, SeamError
from runs.core.recent import Recent
from runs.core.states import AttemptState, Gate, TrackerKind
from runs.gate_pages import check_run_rows, check_words
from runs.gates import acceptance, levels, review_publishing, rules
from runs.lifecycle import observe
from runs.models import Attempt, Fixer, Review, Run, Validation
from runs.pulls import diff
from runs.spending import limit_rules
from runs.watch import command_rows
from runs.watch import pages as watch_pages
from runs.watch.command_rows import CommandRow
from runs.watch.pages import ValidationCard
from runs.web import words

MOST = 40  # attempts that are listed
BESIDE = 3  # of which so many stand side by side; older ones are folded
EARLIER = 20  # attempts of the project whose commands tell how long they usually take
FINDINGS, FILES = 100, 200
RAW_BYTES = 1_000_000
_LONG = ("results", "evidence", "evidence_from", "context", "spec", "coverage", "artifacts")
_PRIORITIES = ("bad", "bad", "warn", "")
_SOURCES = {"transcript": "recorded by the agent", "check": "run by labsite"}
_PASSES: Recent[Mapping[str, Sequence[float]]] = Recent(
    100_000, lambda found: sum(len(times) for times in found.values())
)


@dataclass(frozen=True, slots=True)
class GateStep:
    """One gate of an attempt: how it stands, since when or how long, and why."""

    gate: Gate
    state: str
    began_at: datetime | None = None
    seconds: float | None = None
    reasons: Sequence[str] = ()
    is_final: bool = False

    @property
    def tone(self) -> str:
        return check_words.TONES.get(self.state, "")

    @property
    def name(self) -> str:
        return self.gate.words

    @property
    def said(self) -> Sequence[tuple[str, str]]:
        """Each reason as its first line and what follows it, such as the end of an output."""
        pairs = (reason.strip().partition("\n") for reason in self.reasons)
        return [(head, rest) for head, _, rest in pairs]

    @property
    def took(self) -> str:
        """How long it took; empty where it has not run."""
        return "" if self.state == "skipped" else words.took(self.seconds)


@dataclass(frozen=True, slots=True)
class AttemptCard:
    """An attempt beside the others. `url`: its own address on the page."""

    row: Attempt
    steps: Sequence[GateStep]
    url: str
    is_shown: bool

    @property
    def state(self) -> str:
        return check_words.attempt(self.row)

    @property
    def tone(self) -> str:
        return check_words.attempt_tone(self.row)

    @property
    def seconds(self) -> float | None:
        ended = self.row.ended_at
        return (ended - self.row.began_at).total_seconds() if ended else None

    @property
    def more(self) -> str:
        """What ended it, where its gates do not say so themselves."""
        said = "; ".join(reason for step in self.steps for reason in step.reasons)
        rest = [one for one in self.row.reason.split("; ") if one and one not in said]
        return "; ".join(rest)


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """What is known of one expected command, who says so, and why it does not count."""

    name: str
    text: str
    state: str
    tone: str
    source: str
    word: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class FindingRow:
    """What a reviewer found. `url` leads to the line in the run's diff."""

    priority: int
    tone: str
    where: str
    url: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class CheckFileRow:
    """A changed file that belongs to the checks. `url` leads to it in the run's diff."""

    path: str
    part: Part
    why: str
    url: str

    @property
    def tone(self) -> str:
        return "warn" if self.part is Part.REMOVED_TEST else ""


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """One reviewer of an attempt, with findings, the gravest first."""

    row: Review
    state: str
    findings: Sequence[FindingRow]
    more: int
    log: str

    @property
    def tone(self) -> str:
        return check_words.TONES.get(self.state, "")

    @property
    def is_running(self) -> bool:
        return self.state == "running"

    @property
    def used(self) -> str:
        """Tokens and money, as far as its program told them."""
        used = self.row.used
        tokens = [] if used.tokens is None else [f"{used.tokens:,} tokens"]
        return ", ".join(tokens + ([] if used.cost is None else [limit_rules.money(used.cost)]))


@dataclass(frozen=True, slots=True)
class Shown:
    """One attempt in full."""

    card: AttemptCard
    evidence: Sequence[EvidenceRow]
    commands: Sequence[CommandRow]
    reviews: Sequence[ReviewRow]
    files: Sequence[Mapping[str, str]]
    more_files: int
    worktree: str
    check_files: Sequence[CheckFileRow] = ()

    @property
    def row(self) -> Attempt:
        return self.card.row

    @property
    def tracking_issue(self) -> str:
        """The issue with its low-priority findings; empty for none."""
        return str((self.row.artifacts or {}).get(review_publishing.ISSUE) or "")

    @property
    def labels(self) -> str:
        """How its changed files are classified, in numbers."""
        context: Mapping[str, Any] = self.row.context
        found = [one.get("label", "") for one in context.get("changed_files") or ()]
        kinds = [(kind, found.count(kind)) for kind in ("code", "docs")]
        return ", ".join(f"{number} {kind}" for kind, number in kinds if number)


@dataclass(frozen=True, slots=True)
class Line:
    """How the gates of a run stand, in one line for its own page."""

    tone: str
    state: str
    text: str
    closing: check_words.Closing | None


def line(run: Run) -> Line | None:
    """One line on the gates of a run; None where none prove it.

    One query after its first attempt, two more while it waits for its run level.
    """
    if not check_words.is_gated(run):
        return None
    if run.is_checking:
        where = check_words.where(run)
        return Line("live", "checking", f"{where[:1].upper()}{where[1:]}", None)
    if not run.attempts:
        waits = "No attempt yet: the gates begin when its agent says that it is done."
        return Line("", "waiting" if run.is_active else "none", waits, None)
    row = Attempt.objects.filter(run=run).defer(*_LONG).order_by("-number").first()
    if row is None:
        return None
    reason = f": {row.reason}" if row.reason else ""
    tone, state = check_words.attempt_tone(row), check_words.attempt(row)
    closing = check_words.closing(run, levels.read_levels([run]).get(run.pk))
    return Line(tone, state, f"Attempt {row.number}{reason}", closing)


def of(lab: Lab, run: Run, number: int | None = None) -> dict[str, Any]:
    """Everything of the page beside its frame, of the newest attempt if no other is asked for.

    Six queries, two fewer without an attempt; one more the first time that an attempt is shown,
    two while the run waits for its run level. Raises Http404.
    """
    rows = list(
        Attempt.objects.filter(run=run).defer(*_LONG).with_retries().order_by("-number")[:MOST]
    )
    chosen = next((row for row in rows if number in (None, row.number)), None)
    if number is not None and chosen is None:
        raise Http404("This run has no such attempt.")
    cards = [_card(run, row, is_shown=row is chosen) for row in rows]
    stands = levels.read_levels([run]).get(run.pk)
    return {
        "run": run,
        "beside": cards[:BESIDE],
        "older": cards[BESIDE:],
        "shown": _shown(lab, run, next(card for card in cards if card.is_shown)) if rows else None,
        "level": _level(lab, run),
        "asking": acceptance.find_asking(run),
        "check_runs": check_run_rows.of(run.pk, chosen.tree if chosen else ""),
        "stands": stands,
        "closing": check_words.closing(run, stands),
        "is_gated": check_words.is_gated(run),
        "issue_is_here": run.project.tracker == TrackerKind.BUILTIN,
    }


def is_newest(run: Run, number: int) -> bool:
    """Whether an attempt is the newest of its run. One query."""
    return not Attempt.objects.filter(run=run, number__gt=number).exists()


def mark(lab: Lab, run_id: int) -> str:
    """Changes with everything that the newest attempt, its reviews, a run level or a `labctl check`
    show. Five queries."""
    rows = Attempt.objects.filter(run=run_id).order_by("-number").defer("context", "spec")
    row = rows.first()
    told: list[object] = []
    if row is not None:
        told = [row.number, row.state, row.gate, row.decisions, row.evidence, row.results]
        told += [row.coverage, row.artifacts, row.warning, row.resolution, row.commit, row.reason]
        told += list(row.reviews.values_list("reviewer", "state", "findings", "reason"))
        running = [one for one in row.results if one["is_running"]] if row.is_running else []
        told += [_size(lab, row, name) for name in sorted(command_rows.files(running))]
    closing = Run.objects.filter(pk=run_id).values_list("close_asked_at", "closed_at", "watch")
    found = closing.first()
    told += [found, *check_run_rows.mark(run_id)]
    level = _levels(found[2] if found else None, run_id).first()
    if level is not None:
        told += [level.pk, level.state, level.step, level.reason, level.follow_up_key]
        told += [level.results, level.coverage, level.e2e] if level.run_id else []
    return hashlib.sha256(repr(told).encode()).hexdigest()[:20]


def printed(lab: Lab, row: Attempt | Validation, name: str, start: int | None) -> Output | None:
    """A piece of what a command or a reviewer printed, the end if no start is asked for.

    None where that file is none of its own, or is gone. Raises SeamError.
    """
    known = command_rows.files(row.results)
    if isinstance(row, Attempt):
        known |= set(row.reviews.exclude(log_name="").values_list("log_name", flat=True))
    elif row.e2e:
        known.add(str(row.e2e.get("log") or ""))
    if name not in known or row.host != lab.host:
        return None
    at = -RAW_BYTES if start is None else start
    return lab.checks.output(row.folder(lab.paths), name, at, RAW_BYTES)


def place(lab: Lab, run: Run, path: str, number: int | None) -> str:
    """Where the diff of a run shows a line of a file; else the file, else the diff."""
    changes = observe.changes(lab, run)
    files = diff.files(changes.files, changes.patch)
    file = next((one for one in files if one.change.path == path), None)
    if file is None:
        return "changes"
    has_line = number is not None and any(one.new == number for one in file.lines)
    return f"f{file.number}-L{number}" if has_line else f"file-{file.number}"


def _card(run: Run, row: Attempt, *, is_shown: bool) -> AttemptCard:
    url = f"{reverse('runs:run-checks', args=[run.pk])}?attempt={row.number}"
    return AttemptCard(row, steps(row), url, is_shown)


def steps(row: Attempt) -> list[GateStep]:
    """The chain of an attempt: what its gates said, where it is, and what is still to come."""
    said = {one["gate"]: one for one in row.decisions}
    found, since = [], row.began_at
    for gate in rules.ORDER:
        stored = said.get(gate)
        if stored is not None:
            found.append(_decided(gate, stored, since))
            since = _moment(stored) or since
        elif row.is_running:
            is_at = row.gate == gate
            found.append(
                GateStep(gate, "running" if is_at else "waiting", since if is_at else None)
            )
        else:
            is_at = row.gate == gate and row.state in (AttemptState.ERROR, AttemptState.CANCELLED)
            found.append(GateStep(gate, row.state if is_at else "not run"))
    return found


def _decided(gate: Gate, stored: Mapping[str, Any], since: datetime) -> GateStep:
    at = _moment(stored)
    made = rules.decision(stored)
    word = "skipped" if made.is_skipped else "passed" if made.passed else "failed"
    state = made.unreviewed.words or word
    seconds = max(0.0, (at - since).total_seconds()) if at else None
    is_final = not made.passed and not made.is_retryable
    return GateStep(gate, state, None, seconds, made.reasons, is_final)


def _moment(stored: Mapping[str, Any]) -> datetime | None:
    return datetime.fromisoformat(stored["at"]) if stored.get("at") else None


def _shown(lab: Lab, run: Run, card: AttemptCard) -> Shown:
    row = card.row
    row.refresh_from_db(fields=_LONG)
    spec: Mapping[str, Any] = row.spec
    frame = command_rows.Frame(
        is_running=row.is_running,
        is_waiting=row.is_running,
        printed=command_rows.of_lab(lab, row),
        link=lambda name: reverse("runs:run-check-output", args=[run.pk, row.number, name]),
        passes=_PASSES.get(row.mark, lambda: _passes(row)),
    )
    allowed = {one["name"] for one in spec.get("commands", ()) if one.get("allow_fail")}
    files = (row.context or {}).get("changed_files") or ()
    kept: Mapping[str, Any] = row.artifacts or {}
    return Shown(
        card,
        [_evidence(one, one.get("command") in allowed) for one in row.evidence],
        command_rows.rows(spec.get("commands", ()), row.results, frame),
        [_review(run, row, one) for one in row.reviews.all()],
        files[:FILES],
        max(0, len(files) - FILES),
        kept.get("worktree_path") or "" if kept.get("worktree_state") == "kept" else "",
        [_check_file(run, one) for one in (row.context or {}).get(check_files.KEY) or ()],
    )


def _passes(row: Attempt) -> Mapping[str, Sequence[float]]:
    before = Attempt.objects.filter(project=row.project_id, pk__lt=row.pk, ended_at__isnull=False)
    found = before.order_by("-pk").values_list("results", flat=True)
    return command_rows.passes(found[:EARLIER])


def _evidence(stored: Mapping[str, Any], may_fail: bool) -> EvidenceRow:
    """The state of one expected command, as the gate judged it."""
    status, word = stored.get("status"), stored.get("word") or ""
    if not stored.get("needed", True):
        state, tone = "not needed", ""
    elif status is None:
        state, tone = "missing", "bad"
    elif status:
        state, tone = ("failed (allowed)", "warn") if may_fail else ("failed", "bad")
    else:
        state, tone = ("passed", "good") if stored.get("proven") else ("does not count", "bad")
    return EvidenceRow(
        stored.get("command") or "",
        stored.get("argv") or "",
        state,
        tone,
        _SOURCES.get(stored.get("source") or "", "") if status is not None else "",
        word,
        stored.get("seconds") if status is not None else None,
    )


def _review(run: Run, attempt: Attempt, row: Review) -> ReviewRow:
    found = sorted(row.findings, key=lambda one: one.get("priority", 3))
    at = reverse("runs:run-check-output", args=[run.pk, attempt.number, row.log_name or "-"])
    return ReviewRow(
        row,
        check_words.review(row),
        [_finding(run, one) for one in found[:FINDINGS]],
        max(0, len(found) - FINDINGS),
        at if row.log_name else "",
    )


def _finding(run: Run, stored: Mapping[str, Any]) -> FindingRow:
    priority = min(3, max(0, int(stored.get("priority", 3))))
    path, number = str(stored.get("path") or ""), stored.get("line")
    url = _place_url(run, path, number) if path else ""
    where = f"{path}:{number}" if path and number else path
    title, body = str(stored.get("title") or ""), str(stored.get("body") or "")
    return FindingRow(priority, _PRIORITIES[priority], where, url, title, body)


def _check_file(run: Run, stored: Mapping[str, Any]) -> CheckFileRow:
    path = str(stored["path"])
    return CheckFileRow(path, Part(stored["part"]), str(stored["why"]), _place_url(run, path))


def _place_url(run: Run, path: str, number: int | None = None) -> str:
    query = {"path": path} | ({"line": number} if number else {})
    return f"{reverse('runs:run-check-line', args=[run.pk])}?{urlencode(query)}"


def _levels(watch: int | None, run_id: int) -> Any:
    about = Q(run=run_id) if watch is None else Q(run=run_id) | Q(session=watch)
    return Validation.objects.filter(about, spec__isnull=False).order_by("-pk")


def _level(lab: Lab, run: Run) -> ValidationCard | None:
    """The newest run level that is about this run; of a session without its commands."""
    row = _levels(run.watch_id, run.pk).first()
    if row is None:
        return None
    if row.session_id is not None:
        return ValidationCard(row, (), ())
    fixers = list(Fixer.objects.filter(validation=row).order_by("number"))
    passes = watch_pages.earlier_passes([row])
    return watch_pages.validation_card(lab, row, fixers, passes.get(row.pk))


def _size(lab: Lab, row: Attempt, name: str) -> int:
    """How much a command has printed by now; could not tell is nothing."""
    try:
        found = lab.checks.output(row.folder(lab.paths), name, 0, 0)
    except SeamError:
        return 0
    return found.size if found is not None else 0
