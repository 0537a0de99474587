"""Addresses of the agent's API, below /agent/."""

from __future__ import annotations

from django.urls import path

from runs.agents import agent_api
from runs.groups import agent_api as group_agent_api
from runs.loops import agent_api as loops_agent_api
from runs.on_request import agent_api as on_request_agent_api

app_name = "agent"
urlpatterns = [
    path("whoami", agent_api.whoami, name="whoami"),
    path("issues", agent_api.issue_list, name="issues"),
    path("issues/<str:key>/comments", agent_api.comments, name="comments"),
    path("issues/<str:key>", agent_api.issue, name="issue"),
    path("done", agent_api.done, name="done"),
    path("claims/<str:word>", on_request_agent_api.claim, name="claim-issue"),
    path("loop/step", loops_agent_api.step, name="loop-step"),
    path("loop/next", loops_agent_api.next_issue, name="loop-next"),
    path("loop/memories", loops_agent_api.memories, name="loop-memories"),
    path("loop/tasks", loops_agent_api.tasks, name="loop-tasks"),
    path("loop/tasks/<int:number>/<str:word>", loops_agent_api.task, name="loop-task"),
    path("loop/ack", loops_agent_api.acknowledge, name="loop-ack"),
    path("checks", on_request_agent_api.check_list, name="checks"),
    path("checks/stop", on_request_agent_api.check_stop, name="check-stop"),
    path("checks/<int:check_id>", on_request_agent_api.check, name="check-run"),
    path(
        "checks/<int:check_id>/<int:number>/<int:start>",
        on_request_agent_api.check_output,
        name="check-output",
    ),
    path("git-credential", agent_api.git_credential, name="git-credential"),
    path("pull/comments", agent_api.pull_comments, name="pull-comments"),
    path("pull", agent_api.pull, name="pull"),
    path("groups", group_agent_api.groups_door, name="groups"),
    path("groups/<str:name>", group_agent_api.group, name="group"),
    path("groups/<str:name>/close", group_agent_api.close, name="group-close"),
    path("groups/<str:name>/watch", group_agent_api.watch, name="group-watch"),
    path("groups/<str:name>/tasks", group_agent_api.tasks_door, name="tasks"),
    path("groups/<str:name>/claim", group_agent_api.claim, name="claim"),
    path("groups/<str:name>/tasks/<str:key>/done", group_agent_api.done, name="task-done"),
    path(
        "groups/<str:name>/tasks/<str:key>/release",
        group_agent_api.release,
        name="task-release",
    ),
    path("<path:rest>", agent_api.nothing),
]
