"""Addresses of the pages on people."""

from __future__ import annotations

from django.urls import include, path

from runs.people import views as people

person_patterns = [
    path("", people.person, name="person"),
    path("role", people.person_role, name="person-role"),
    path("deactivate", people.person_out, name="person-out"),
    path("activate", people.person_in, name="person-in"),
    path("link", people.person_link, name="person-link"),
    path("tokens/<int:token_id>/revoke", people.person_token_revoke, name="person-token-revoke"),
]
urlpatterns = [
    path("people/", people.everyone, name="people"),
    path("people/live", people.everyone_live, name="people-live"),
    path("people/new", people.person_new, name="person-new"),
    path("people/<int:person_id>/", include(person_patterns)),
]
