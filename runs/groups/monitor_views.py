"""Monitors of task groups on the pages: started with a preset or other options, stopped."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST

from runs import wiring
from runs.groups import answers as group_answers
from runs.groups import forms, monitors, pages
from runs.groups.forms import MonitorForm
from runs.models import MonitorPreset, TaskGroup
from runs.web import answers
from runs.web.access import act, username

STARTED = "A monitor watches this group from now on."
STOPPED = "The monitor is stopped. Tasks and workers go on."
STOPPED_BEFORE = "No monitor was running. Nothing was changed."


@require_http_methods(["GET", "POST"])
@act
def start(request: HttpRequest, project_id: int, group_id: int) -> HttpResponse:
    """Watch a group: at once as its preset says (`quick`), or with options of one's own."""
    group = pages.group_of(project_id, group_id)
    presets = monitors.presets()
    name = request.POST.get("preset") or request.GET.get("preset") or group.preset
    preset = next((one for one in presets if one.name == name), presets[0])
    locked = preset.is_unique or any(p.is_unique for p in presets if p.name == group.preset)
    if request.method == "POST" and request.POST.get("quick"):
        return _quick(request, group)
    form = MonitorForm.of(preset, group, locked=locked)
    if request.method == "POST":
        form = MonitorForm(request.POST, initial=form.initial, locked=locked)
        if form.is_valid() and _started(request, group, form):
            return group_answers.done(request, group, STARTED)
    return _form(request, group, presets, preset, form)


@require_POST
@act
def stop(request: HttpRequest, project_id: int, group_id: int) -> HttpResponse:
    """End the monitor that watches a group; no task and no worker is touched."""
    group = pages.group_of(project_id, group_id)
    running = monitors.running_of(group)
    won = running is not None and monitors.stop(wiring.lab(), running, username(request))
    return group_answers.done(request, group, STOPPED if won else STOPPED_BEFORE)


def _quick(request: HttpRequest, group: TaskGroup) -> HttpResponse:
    try:
        monitors.start(wiring.lab(), group, by=username(request))
    except monitors.MonitorRefused as refused:
        return group_answers.refused(request, group, str(refused))
    return group_answers.done(request, group, STARTED)


def _started(request: HttpRequest, group: TaskGroup, form: MonitorForm) -> bool:
    """Whether it was started; else the reasons are at their fields."""
    sent = form.cleaned_data
    try:
        monitors.start(
            wiring.lab(),
            group,
            by=username(request),
            preset=sent["preset"],
            given=form.given,
            expected=sent["expected"],
        )
    except monitors.MonitorRefused as refused:
        for option, text in refused.fields.items():
            name = forms.FIELDS.get(option, option)
            form.add_error(name if name in form.fields else None, text)
        if not refused.fields:
            form.add_error(None, str(refused))
        return False
    return True


def _form(
    request: HttpRequest,
    group: TaskGroup,
    presets: list[MonitorPreset],
    preset: MonitorPreset,
    form: MonitorForm,
) -> HttpResponse:
    facts = {
        "group": group,
        "project": group.project,
        "presets": presets,
        "preset": preset,
        "told": forms.told(preset),
        "form": form,
    }
    status = 422 if form.is_bound else 200
    return answers.fresh(render(request, "groups/monitor.html", facts, status=status))
