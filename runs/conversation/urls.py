"""Addresses of a run's conversation."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from runs.conversation import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.conversation, name="conversation"),
    path("live", views.conversation_live, name="conversation-live"),
    path("search", views.conversation_search, name="conversation-search"),
    path("text", views.conversation_text, name="conversation-text"),
    path("conversation.json", views.conversation_json, name="conversation-json"),
    path("conversation.md", views.conversation_markdown, name="conversation-markdown"),
]
