"""Where one is told outside of labsite, of what, and what became of it."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import asdict
from itertools import groupby
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import wiring
from runs.models import NoticeAddress, NoticeTimes
from runs.notices import addresses, deliveries, push_rules, pushes, rules
from runs.notices.rules import Delivering
from runs.people import pages as people_pages
from runs.people.stepup import confirmed
from runs.settings import edit_forms, edits
from runs.settings.edit_forms import EditForm, chosen, stored, told_as
from runs.web import answers, live
from runs.web.access import act, look, me, username
from runs.web.live import Live
from runs.web.refusals import at_fields

ADDED = "Notices of the kinds you chose go to {name} from now on. Send a test to see that it works."
CHOSEN = "Saved. {name} gets the notices that you chose."
QUIET = "Your quiet hours and the hour of your digest are stored."
REMOVED = "Nothing is sent to {name} any more."
SENT = "The test was sent to {name}."
UNSENT = "The test could not be sent to {name}: {why}. Nothing else was changed."
PARTS = {
    "notice-devices": "notices/_devices",
    "notice-addresses": "notices/_addresses",
    "notice-times": "notices/_times",
    "notice-deliveries": "notices/_deliveries",
}
ON_THE_WAY = "The test to {name} is on its way. How it went is in the list below in a moment."


def _choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """The kinds of notices, under their headings."""
    return [
        (group, [(topic.key, topic.words) for topic in topics])
        for group, topics in groupby(rules.TOPICS, key=lambda topic: topic.group)
    ]


class TopicsForm(forms.Form):
    """What is told at an address."""

    topics = forms.MultipleChoiceField(
        label="Notices",
        required=False,
        choices=_choices,
        initial=list(rules.AT_FIRST),
        widget=forms.CheckboxSelectMultiple,
    )


class ChosenForm(EditForm, TopicsForm):
    """What is told at an address that there is, and when."""

    after_minutes = forms.IntegerField(
        label="Only if not seen elsewhere for (minutes)",
        required=False,
        min_value=0,
        max_value=1440,
        help_text=(
            "Up to 1440. Empty or 0: sent at once. Seen is what you opened, pressed or "
            "dismissed on a device, or whose page you opened."
        ),
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
    )
    tests_weekly = forms.BooleanField(label="Send a test every week", required=False)

    @classmethod
    def stored(cls, address: NoticeAddress) -> ChosenForm:
        """The form with what was chosen for an address."""
        shown = {name: getattr(address, name) for name in addresses.CHOSEN}
        return cls(initial={**shown, "seen": edits.mark(shown)})


class DeviceForm(TopicsForm):
    """A browser that takes pushes; it fills in all but the name by itself."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        help_text="Display name, such as: my phone.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": "Write a name."},
    )
    endpoint = forms.CharField(
        max_length=2000,
        widget=forms.HiddenInput,
        error_messages={"required": "This browser has not allowed notifications yet."},
    )
    p256dh = forms.CharField(max_length=200, widget=forms.HiddenInput)
    auth = forms.CharField(max_length=100, widget=forms.HiddenInput)
    field_order = ["name", "endpoint", "p256dh", "auth", "topics"]


class QuietForm(EditForm):
    """The hours in which a person wants no notices, and when they want the digest."""

    quiet_from = forms.TimeField(
        label="From", required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    quiet_to = forms.TimeField(
        label="To", required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    zone = forms.CharField(
        label="Time zone",
        max_length=64,
        initial="UTC",
        help_text="As the tz database writes it: Europe/Berlin, America/New_York, UTC.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
        error_messages={"required": "Write a time zone."},
    )

    digest_at = forms.TimeField(
        label="Morning digest at",
        required=False,
        help_text="What was done, what waits and what it cost, once a day. Empty: none.",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )

    @classmethod
    def stored(cls, user: User) -> QuietForm:
        """The form with the hours of a person."""
        shown = asdict(addresses.hours_of(user))
        return cls(initial={**shown, "seen": edits.mark(shown)})

    def clean_zone(self) -> str:
        """The name of a zone that there is."""
        name: str = self.cleaned_data["zone"].strip()
        if push_rules.zone_of(name) is None:
            raise forms.ValidationError("There is no time zone of this name.")
        return name

    def clean(self) -> dict[str, Any]:
        """Both ends or none."""
        given = super().clean() or {}
        for one, other in (("quiet_from", "quiet_to"), ("quiet_to", "quiet_from")):
            if not self.errors and given.get(one) and not given.get(other):
                self.add_error(other, "Write both times, or neither.")
        return given


class AddressForm(TopicsForm):
    """A new address. What was typed as its URL is never sent back."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        help_text="Display name, such as: my phone.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": "Write a name."},
    )
    url = forms.CharField(
        label="Address",
        max_length=2000,
        help_text=(
            "As Apprise writes it: ntfys://ntfy.sh/my-topic, mailtos://…, slack://…, matrixs://…, "
            "tgram://…, or json:// for a program of your own. Stored encrypted, never shown again."
        ),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "Write an address."},
    )
    field_order = ["name", "url", "topics"]


@never_cache
@require_GET
@look
def notices(request: HttpRequest) -> HttpResponse:
    """One's own addresses, and what was sent there lately."""
    return live.page(request, "notices/page.html", _mine(me(request)), "runs:notices-live")


@require_GET
@look
def notices_live(request: HttpRequest) -> HttpResponse:
    """The same as it is now; only the frame of it is pushed, since each person has a page of their own."""
    return live.refresh(request, _mine(me(request)))


def _mine(user: User) -> Live:
    @functools.cache
    def facts() -> dict[str, Any]:
        found = people_pages.addresses_of(user)
        return {
            "addresses": [one for one in found if not one.is_device],
            "devices": [one for one in found if one.is_device],
            "sent": people_pages.deliveries_of(user),
            "times": NoticeTimes.objects.filter(user=user).first(),
        }

    def seen() -> str:
        shown = facts()
        rows = [*shown["addresses"], *shown["devices"], *shown["sent"], shown["times"]]
        told = [
            [(name, value) for name, value in vars(row).items() if not name.startswith("_")]
            for row in rows
            if row is not None
        ]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:12]

    return Live("notices", PARTS, facts, seen, is_asked=True)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@act
@confirmed
def address_new(request: HttpRequest) -> HttpResponse:
    """Add an address. Asked for again, since what happens here is told there."""
    form = AddressForm(request.POST or None)
    if form.is_valid():
        given = form.cleaned_data
        try:
            made = addresses.add(
                wiring.lab(), me(request), given["name"], given["url"], given["topics"]
            )
        except addresses.AddressRefused as refused:
            at_fields(form, refused)
        else:
            text = ADDED.format(name=made.name)
            return answers.done(request, {}, reverse("runs:notices"), text)
    status = 400 if form.is_bound else 200
    return render(request, "notices/address_new.html", {"form": form}, status=status)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@act
@confirmed
def device_new(request: HttpRequest) -> HttpResponse:
    """Turn on notices on the device that asks: what happens here is told there, and acted on from."""
    lab = wiring.lab()
    form = DeviceForm(request.POST or None)
    if form.is_valid():
        given = form.cleaned_data
        device = addresses.Device(given["endpoint"], given["p256dh"], given["auth"])
        try:
            made = addresses.turn_on(lab, me(request), given["name"], device, given["topics"])
        except addresses.AddressRefused as refused:
            at_fields(form, refused)
        else:
            text = ADDED.format(name=made.name)
            return answers.done(request, {}, reverse("runs:notices"), text)
    status = 400 if form.is_bound else 200
    facts = {"form": form, "key": pushes.public_key(lab)}
    return render(request, "notices/device_new.html", facts, status=status)


@never_cache
@require_http_methods(["GET", "POST"])
@act
def quiet(request: HttpRequest) -> HttpResponse:
    """Choose the hours in which one wants no notices."""
    user = me(request)
    form = QuietForm.stored(user)
    if request.method == "POST":
        form = QuietForm(chosen(request.POST, form))

        def store() -> bool:
            given = dict(form.cleaned_data)
            seen = given.pop("seen")
            addresses.keep_hours(wiring.lab(), user, addresses.Hours(**given), seen)
            return True

        told = told_as("quiet hours", by=user.get_username())
        if stored(form, store, lambda: QuietForm.stored(user), told):
            return answers.done(request, {}, reverse("runs:notices"), QUIET)
    status = 400 if form.errors else edit_forms.status(form)
    return render(request, "notices/quiet.html", {"form": form}, status=status)


@never_cache
@require_http_methods(["GET", "POST"])
@act
def address(request: HttpRequest, address_id: int) -> HttpResponse:
    """Choose what is told at an address of one's own."""
    mine = get_object_or_404(NoticeAddress, pk=address_id, user=me(request))
    form = ChosenForm.stored(mine)
    if request.method == "POST":
        form = ChosenForm(chosen(request.POST, form))

        def store() -> bool:
            given = dict(form.cleaned_data)
            topics, after = given.pop("topics"), given.pop("after_minutes") or 0
            who = username(request)
            addresses.choose(wiring.lab(), mine, topics, who, after_minutes=after, **given)
            return True

        now = lambda: ChosenForm.stored(NoticeAddress.objects.get(pk=mine.pk))  # noqa: E731
        if stored(form, store, now, told_as(f"notices to {mine.name}: ", by=username(request))):
            return answers.done(request, {}, reverse("runs:notices"), CHOSEN.format(name=mine.name))
    status = 400 if form.errors else edit_forms.status(form)
    facts = {"form": form, "address": mine}
    return render(request, "notices/address.html", facts, status=status)


@require_POST
@act
def test(request: HttpRequest, address_id: int) -> HttpResponse:
    """Send a test to an address of one's own and say how that went."""
    mine = get_object_or_404(NoticeAddress, pk=address_id, user=me(request))
    lab = wiring.lab()
    row = deliveries.wait(lab, deliveries.try_out(lab, mine))
    back = reverse("runs:notices")
    if row.state == Delivering.FAILED:
        text = UNSENT.format(name=mine.name, why=row.error)
        return answers.failed(request, text, 502, back)
    words = SENT if row.state == Delivering.SENT else ON_THE_WAY
    level: answers.Level = "success" if row.state == Delivering.SENT else "info"
    return answers.done(request, {}, back, words.format(name=mine.name), level)


@require_POST
@act
def remove(request: HttpRequest, address_id: int) -> HttpResponse:
    """Forget an address of one's own."""
    mine = get_object_or_404(NoticeAddress, pk=address_id, user=me(request))
    addresses.remove(wiring.lab(), mine, by=username(request))
    return answers.done(request, {}, reverse("runs:notices"), REMOVED.format(name=mine.name))
