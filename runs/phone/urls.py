"""Addresses of what makes the product installable, at the root."""

from __future__ import annotations

from django.urls import path

from runs.phone import push_views, views

urlpatterns = [
    path("manifest.webmanifest", views.manifest, name="manifest"),
    path("worker.js", views.worker, name="worker"),
    path("offline", views.offline, name="offline"),
    path("favicon.svg", views.favicon, name="favicon"),
    path("icons/<str:name>.png", views.icon, name="icon"),
    path("push/act/<str:token>/", push_views.push_act, name="push-act"),
    path("push/receipt", push_views.push_receipt, name="push-receipt"),
    path("push/renew", push_views.push_renew, name="push-renew"),
    path("needs/count", views.needs_count, name="needs-count"),
]
