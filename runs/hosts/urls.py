"""Addresses of hosts, and of the door by which a machine joins."""

from __future__ import annotations

from django.urls import path

from runs.hosts import join_views, views

urlpatterns = [
    path("hosts/", views.hosts, name="hosts"),
    path("hosts/join", join_views.join, name="host-join"),
    path("hosts/<int:host_id>/drain", views.drain, name="host-drain"),
    path("hosts/<int:host_id>/resume", views.resume, name="host-resume"),
    path("hosts/<int:host_id>/give-up", views.give_up, name="host-give-up"),
    path("hosts/<int:host_id>/remove", views.remove, name="host-remove"),
]
