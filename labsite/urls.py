"""All addresses."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.generic import RedirectView

admin.autodiscover()
admin.site.site_header = "labsite"
admin.site.site_title = "labsite"
admin.site.index_title = "Budgets, caps and profiles"

# One door to log in and one to change a password, where tries are counted; admin brings its own.
to_login = login_not_required(RedirectView.as_view(pattern_name="runs:login", query_string=True))
to_password = RedirectView.as_view(pattern_name="runs:password")

urlpatterns = [
    path("admin/login/", to_login, name="admin-login"),
    path("admin/password_change/", to_password, name="admin-password"),
    path("admin/", admin.site.urls),
    path("", include("runs.urls")),
]

handler500 = "runs.web.trouble_views.failed"
