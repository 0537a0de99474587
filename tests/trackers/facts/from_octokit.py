"""Makes github.json from an unpacked npm package @octokit/openapi; not run by tests."""

from __future__ import annotations

import functools
import json
import operator
import sys
from pathlib import Path
from typing import Any

from tests.trackers.facts.writing import copyright_of, write

HERE = Path(__file__).parent
REPO = "/repos/{owner}/{repo}"
ISSUE = REPO + "/issues/{issue_number}"

OPERATIONS = {
    "repo": ("get", REPO),
    "issues": ("get", REPO + "/issues"),
    "issue": ("get", ISSUE),
    "create issue": ("post", REPO + "/issues"),
    "edit issue": ("patch", ISSUE),
    "comments": ("get", ISSUE + "/comments"),
    "create comment": ("post", ISSUE + "/comments"),
    "labels": ("get", REPO + "/labels"),
    "create label": ("post", REPO + "/labels"),
    "add labels": ("post", ISSUE + "/labels"),
    "remove label": ("delete", ISSUE + "/labels/{name}"),
    "blocked by": ("get", ISSUE + "/dependencies/blocked_by"),
    "pulls": ("get", REPO + "/pulls"),
    "pull": ("get", REPO + "/pulls/{pull_number}"),
    "create pull": ("post", REPO + "/pulls"),
    "reviews": ("get", REPO + "/pulls/{pull_number}/reviews"),
    "comments on lines": ("get", REPO + "/pulls/{pull_number}/comments"),
    "merge": ("put", REPO + "/pulls/{pull_number}/merge"),
    "branch rules": ("get", REPO + "/rules/branches/{branch}"),
    "check runs": ("get", REPO + "/commits/{ref}/check-runs"),
    "combined status": ("get", REPO + "/commits/{ref}/status"),
    "user": ("get", "/user"),
    "meta": ("get", "/meta"),
    "installation token": ("post", "/app/installations/{installation_id}/access_tokens"),
}

# The fields of each schema that an adapter reads or the double sends; everything else is left out.
PERSON = ("id", "login", "type", "html_url")
REPOSITORY = [
    "id",
    "name",
    "full_name",
    "owner",
    "private",
    "html_url",
    "clone_url",
    "fork",
    "archived",
    "disabled",
    "default_branch",
    "has_issues",
    "permissions",
    "allow_merge_commit",
    "allow_squash_merge",
    "allow_rebase_merge",
    "open_issues_count",
]
PULL = [
    "id",
    "number",
    "state",
    "title",
    "body",
    "user",
    "labels",
    "draft",
    "locked",
    "html_url",
    "url",
    "head",
    "base",
    "created_at",
    "updated_at",
    "closed_at",
    "merged_at",
    "merge_commit_sha",
]
KEPT: dict[str, list[str] | tuple[str, ...]] = {
    "simple-user": PERSON,
    "nullable-simple-user": PERSON,
    "private-user": PERSON,
    "public-user": PERSON,
    "full-repository": REPOSITORY,
    "repository": REPOSITORY,
    "nullable-repository": REPOSITORY,
    "minimal-repository": REPOSITORY,
    "issue": [
        "id",
        "number",
        "state",
        "state_reason",
        "title",
        "body",
        "user",
        "labels",
        "milestone",
        "locked",
        "comments",
        "pull_request",
        "html_url",
        "url",
        "created_at",
        "updated_at",
        "closed_at",
        "issue_dependencies_summary",
    ],
    "nullable-milestone": ("title",),
    "issue-dependencies-summary": ("blocked_by", "blocking", "total_blocked_by", "total_blocking"),
    "issue-comment": (
        "id",
        "body",
        "user",
        "author_association",
        "html_url",
        "created_at",
        "updated_at",
    ),
    "label": ("id", "name", "description", "color", "default"),
    "pull-request-simple": PULL,
    "pull-request": [*PULL, "merged", "mergeable", "mergeable_state", "merged_by"],
    "pull-request-review": (
        *("id", "user", "author_association", "body", "state", "html_url"),
        *("submitted_at", "commit_id"),
    ),
    "pull-request-review-comment": [
        "id",
        "pull_request_review_id",
        "diff_hunk",
        "path",
        "line",
        "original_line",
        "user",
        "author_association",
        "body",
        "html_url",
        "created_at",
        "updated_at",
    ],
    "pull-request-merge-result": ("sha", "merged", "message"),
    "check-run": [
        "id",
        "name",
        "head_sha",
        "status",
        "conclusion",
        "html_url",
        "details_url",
        "started_at",
        "completed_at",
        "output",
    ],
    "combined-commit-status": ("state", "sha", "total_count", "statuses"),
    "simple-commit-status": ("id", "state", "context", "target_url", "description"),
    "installation-token": ("token", "expires_at", "permissions", "repository_selection"),
    "api-overview": ("verifiable_password_authentication", "hooks"),
}
ANYTHING = {"app-permissions", "repository-rule-detailed"}


class Reader:
    """Reads one description and collects the schemas that the operations lead to."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.whole = description
        self.schemas: dict[str, Any] = {}

    def resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        """What a reference leads to."""
        while "$ref" in node:
            parts = node["$ref"].removeprefix("#/").split("/")
            node = functools.reduce(operator.getitem, parts, self.whole)
        return node

    def schema(self, node: dict[str, Any], kept: Any = None) -> dict[str, Any]:
        """One schema in few words: type, null, enum, fields, required, items, ref, any."""
        if "$ref" in node:
            return self._reference(node["$ref"].rsplit("/", 1)[1])
        made = self._kind(node, kept)
        if node.get("nullable"):
            made["null"] = True
        return made

    def _reference(self, name: str) -> dict[str, Any]:
        if name in ANYTHING:
            return {"type": "any"}
        target = self.whole["components"]["schemas"][name]
        if target.get("type") not in ("object", None) or "properties" not in target:
            return self.schema(target)
        if name not in KEPT:
            raise SystemExit(f"say in KEPT which fields of {name} are used")
        if name not in self.schemas:
            self.schemas[name] = {}
            self.schemas[name] = self.schema(target, KEPT[name])
        return {"ref": name}

    def _kind(self, node: dict[str, Any], kept: Any) -> dict[str, Any]:
        for word in ("oneOf", "anyOf", "allOf"):
            if word in node:
                return {"any of": [self.schema(one) for one in node[word]]}
        kind = node.get("type", "object" if "properties" in node else "any")
        if kind == "array":
            return {"type": "array", "items": self.schema(node["items"])}
        if kind == "object" and "properties" in node:
            names = [n for n in node["properties"] if kept is None or n in kept]
            return {
                "type": "object",
                "fields": {n: self.schema(node["properties"][n]) for n in names},
                "required": [n for n in node.get("required", []) if n in names],
            }
        made = {"type": kind}
        if "enum" in node:
            made["enum"] = node["enum"]
        return made

    def operation(self, method: str, path: str) -> dict[str, Any]:
        """What the description says of one operation."""
        found = self.whole["paths"][path][method]
        shared = self.whole["paths"][path].get("parameters", [])
        every = [self.resolved(one) for one in [*shared, *found.get("parameters", [])]]
        made: dict[str, Any] = {
            "method": method.upper(),
            "path": path,
            "query": {
                one["name"]: {
                    **self.schema(one["schema"]),
                    **({"required": True} if one.get("required") else {}),
                }
                for one in every
                if one["in"] == "query"
            },
            "answers": sorted(found["responses"]),
        }
        body = found.get("requestBody", {}).get("content", {}).get("application/json")
        if body:
            made["body"] = self.schema(body["schema"])
        status = next(s for s in sorted(found["responses"]) if s.startswith("2"))
        content = self.resolved(found["responses"][status]).get("content", {})
        made["status"] = int(status)
        if "application/json" in content:
            made["answer"] = self.schema(content["application/json"]["schema"])
        return made


def main(package: Path) -> None:
    """Write the extract of one unpacked package."""
    told = json.loads((package / "package.json").read_text())
    reader = Reader(json.loads((package / "generated" / "api.github.com.json").read_text()))
    facts = {
        "package": told["name"],
        "version": told["version"],
        "licence": told["license"],
        "copyright": copyright_of(package),
        "file": "generated/api.github.com.json",
        "operations": {name: reader.operation(*where) for name, where in OPERATIONS.items()},
        "schemas": dict(sorted(reader.schemas.items())),
    }
    write(HERE / "github.json", facts)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
