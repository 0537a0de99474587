"""What an address may say of a place in a conversation."""

from __future__ import annotations

from django import forms

from runs.core.lenient_json import MOST

WHAT = [(name, name) for name in ("text", "command", "given", "output")]


class ConversationPlace(forms.Form):
    """A record, and a place in it. What cannot be meant is left out."""

    record = forms.CharField(max_length=200, required=False)
    before = forms.IntegerField(min_value=0, max_value=MOST, required=False)
    start = forms.IntegerField(min_value=0, max_value=MOST, required=False)
    at = forms.IntegerField(min_value=0, max_value=MOST, required=False)
    part = forms.IntegerField(min_value=0, max_value=100_000, required=False)
    what = forms.ChoiceField(choices=WHAT, required=False)
    q = forms.CharField(max_length=200, required=False)
