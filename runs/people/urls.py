"""Addresses of the pages on people."""

from __future__ import annotations

from django.urls import include, path

from runs.people import views

person_patterns = [
    path("", views.person, name="person"),
    path("role", views.person_role, name="person-role"),
    path("deactivate", views.person_out, name="person-out"),
    path("activate", views.person_in, name="person-in"),
    path("link", views.person_link, name="person-link"),
    path("tokens/<int:token_id>/revoke", views.person_token_revoke, name="person-token-revoke"),
]
urlpatterns = [
    path("people/", views.everyone, name="people"),
    path("people/live", views.everyone_live, name="people-live"),
    path("people/new", views.person_new, name="person-new"),
    path("people/<int:person_id>/", include(person_patterns)),
]
