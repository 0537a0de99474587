"""Where one is told outside of labsite, of what, and what became of it."""

from __future__ import annotations

from itertools import groupby

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import wiring
from runs.models import NoticeAddress
from runs.notices import addresses, deliveries, rules
from runs.notices.rules import Delivering
from runs.people import pages as people_pages
from runs.people.stepup import confirmed
from runs.web import answers
from runs.web.access import act, look, me, username
from runs.web.refusals import at_fields

ADDED = "Notices of the kinds you chose go to {name} from now on. Send a test to see that it works."
CHOSEN = "From now on {name} is told what you chose."
REMOVED = "Nothing is sent to {name} any more."
SENT = "The test was sent to {name}."
UNSENT = "The test could not be sent to {name}: {why}. Nothing else was changed."
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
        label="Tell it",
        required=False,
        choices=_choices,
        initial=list(rules.AT_FIRST),
        widget=forms.CheckboxSelectMultiple,
    )


class AddressForm(TopicsForm):
    """A new address. What was typed as its URL is never sent back."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        help_text="How the page calls it, such as: my phone.",
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
    facts = {
        "addresses": people_pages.addresses_of(me(request)),
        "sent": people_pages.deliveries_of(me(request)),
    }
    return render(request, "notices/page.html", facts)


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
@require_http_methods(["GET", "POST"])
@act
def address(request: HttpRequest, address_id: int) -> HttpResponse:
    """Choose what is told at an address of one's own."""
    mine = get_object_or_404(NoticeAddress, pk=address_id, user=me(request))
    form = TopicsForm(request.POST if request.method == "POST" else None)
    form.initial = {"topics": mine.topics}
    if form.is_bound and form.is_valid():
        addresses.choose(wiring.lab(), mine, form.cleaned_data["topics"], by=username(request))
        text = CHOSEN.format(name=mine.name)
        return answers.done(request, {}, reverse("runs:notices"), text)
    status = 400 if form.is_bound else 200
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
