"""Makes gitea.json from an unpacked npm package gitea-js; not run by tests.

The package is TypeScript made from Gitea's own description. It tells paths, parameters, bodies
and fields, but neither the success status nor which fields may be null: the statuses below are
from memory of Gitea's source, and `tests/trackers/forge/gitea_shapes.py` names what may be null.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.trackers.facts.writing import copyright_of, write

HERE = Path(__file__).parent
REPO = "/repos/{owner}/{repo}"
ISSUE = REPO + "/issues/{index}"

# Name: method, path, and the status of success, which is from memory.
OPERATIONS = {
    "repo": ("GET", REPO, 200),
    "issues": ("GET", REPO + "/issues", 200),
    "issue": ("GET", ISSUE, 200),
    "create issue": ("POST", REPO + "/issues", 201),
    "edit issue": ("PATCH", ISSUE, 201),
    "comments": ("GET", ISSUE + "/comments", 200),
    "create comment": ("POST", ISSUE + "/comments", 201),
    "assignees": ("GET", REPO + "/assignees", 200),
    "labels": ("GET", REPO + "/labels", 200),
    "create label": ("POST", REPO + "/labels", 201),
    "organisation labels": ("GET", "/orgs/{org}/labels", 200),
    "add labels": ("POST", ISSUE + "/labels", 200),
    "remove label": ("DELETE", ISSUE + "/labels/{id}", 204),
    "dependencies": ("GET", ISSUE + "/dependencies", 200),
    "pulls": ("GET", REPO + "/pulls", 200),
    "pull": ("GET", REPO + "/pulls/{index}", 200),
    "create pull": ("POST", REPO + "/pulls", 201),
    "reviews": ("GET", REPO + "/pulls/{index}/reviews", 200),
    "comments on lines": ("GET", REPO + "/pulls/{index}/reviews/{id}/comments", 200),
    "merge": ("POST", REPO + "/pulls/{index}/merge", 200),
    "statuses": ("GET", REPO + "/commits/{ref}/statuses", 200),
    "user": ("GET", "/user", 200),
    "version": ("GET", "/version", 200),
}

# The fields of each schema that an adapter reads or the double sends; everything else is left out.
KEPT: dict[str, list[str]] = {
    "User": ["id", "login", "full_name", "html_url"],
    "Permission": ["admin", "push", "pull"],
    "InternalTracker": ["enable_issue_dependencies"],
    "Repository": [
        "id",
        "name",
        "full_name",
        "owner",
        "private",
        "html_url",
        "clone_url",
        "fork",
        "archived",
        "empty",
        "default_branch",
        "has_issues",
        "has_pull_requests",
        "permissions",
        "internal_tracker",
        "allow_merge_commits",
        "allow_squash_merge",
        "allow_rebase",
        "default_merge_style",
        "open_issues_count",
    ],
    "RepositoryMeta": ["id", "name", "owner", "full_name"],
    "Label": ["id", "name", "color", "description", "exclusive", "is_archived", "url"],
    "Issue": [
        "id",
        "number",
        "state",
        "title",
        "body",
        "user",
        "original_author",
        "labels",
        "milestone",
        "assignees",
        "comments",
        "pull_request",
        "repository",
        "html_url",
        "url",
        "created_at",
        "updated_at",
        "closed_at",
    ],
    "Milestone": ["title"],
    "PullRequestMeta": ["merged", "merged_at", "draft", "html_url"],
    "Comment": ["id", "body", "user", "original_author", "html_url", "created_at", "updated_at"],
    "PullRequest": [
        "id",
        "number",
        "state",
        "title",
        "body",
        "user",
        "labels",
        "draft",
        "html_url",
        "url",
        "head",
        "base",
        "merged",
        "merged_at",
        "merged_by",
        "merge_commit_sha",
        "mergeable",
        "created_at",
        "updated_at",
        "closed_at",
    ],
    "PullReview": ["id", "user", "body", "state", "comments_count", "html_url", "submitted_at"],
    "PullReviewComment": [
        "id",
        "user",
        "body",
        "path",
        "position",
        "original_position",
        "diff_hunk",
        "pull_request_review_id",
        "html_url",
        "created_at",
        "updated_at",
    ],
    "PRBranchInfo": ["label", "ref", "repo", "repo_id", "sha"],
    "CommitStatus": [
        "id",
        "status",
        "context",
        "target_url",
        "description",
        "created_at",
        "updated_at",
    ],
    "ServerVersion": ["version"],
}
PLAIN = {"string": "string", "number": "number", "boolean": "boolean", "any": "any"}


class Reader:
    """Reads the package's types and collects the schemas that the operations lead to."""

    def __init__(self, text: str) -> None:
        self.text = re.sub(r"/\*\*(?:(?!@request).)*?\*/", "", text, flags=re.DOTALL)
        self.schemas: dict[str, Any] = {}

    def type_of(self, told: str) -> dict[str, Any]:
        """One TypeScript type in few words."""
        told = told.strip()
        if told.endswith("[]"):
            return {"type": "array", "items": self.type_of(told[:-2])}
        if told in PLAIN:
            return {"type": PLAIN[told]}
        if "'" in told:
            return {"type": "string", "enum": re.findall(r"'([^']*)'", told)}
        alias = re.search(rf"^type {told} = ([\w\[\]]+);", self.text, re.MULTILINE)
        if alias:
            return self.type_of(alias[1])
        if told not in self.schemas:
            self.schemas[told] = {}
            self.schemas[told] = self.interface(told)
        return {"ref": told}

    def interface(self, name: str) -> dict[str, Any]:
        """An interface: what the package calls required, and the fields that are kept."""
        found = re.search(rf"^interface {name} {{(.*?)^}}", self.text, re.MULTILINE | re.DOTALL)
        if not found:
            raise SystemExit(f"there is no interface {name}")
        fields = re.findall(r"^    (\w+)(\??): ([^;]+);", found[1], re.MULTILINE)
        kept = KEPT.get(name)
        if kept is None and not name.endswith("Option"):
            raise SystemExit(f"say in KEPT which fields of {name} are used")
        names = [field for field, _, _ in fields if kept is None or field in kept]
        if kept and set(kept) - set(names):
            raise SystemExit(f"{name} has no {set(kept) - set(names)}")
        return {
            "type": "object",
            "fields": {field: self.type_of(told) for field, _, told in fields if field in names},
            "required": [field for field, mark, _ in fields if not mark and field in names],
        }

    def operation(self, method: str, path: str, status: int) -> dict[str, Any]:
        """What the types say of one operation."""
        at = self.text.index(f"@request {method}:{path}\n")
        end = self.text.index("=> Promise<HttpResponse<", at)
        head, tail = self.text[at:end], self.text[end : end + 200]
        made: dict[str, Any] = {"method": method, "path": path, "query": {}, "status": status}
        query = re.search(r"query(\??): {(.*?)^ +}", head, re.DOTALL | re.MULTILINE)
        for name, mark, told in re.findall(
            r"^ +'?([\w-]+)'?(\??): ([^;]+);", query[2] if query else "", re.MULTILINE
        ):
            made["query"][name] = self.type_of(told) | ({} if mark else {"required": True})
        body = re.search(r"\bbody: (\w+)", head)
        if body:
            made["body"] = self.type_of(body[1])
        answer = re.match(r"=> Promise<HttpResponse<([\w\[\]]+)", tail)
        if answer and answer[1] not in ("any", "void"):
            made["answer"] = self.type_of(answer[1])
        return made


def main(package: Path) -> None:
    """Write the extract of one unpacked package."""
    told = json.loads((package / "package.json").read_text())
    reader = Reader((package / "dist" / "index.d.ts").read_text())
    facts = {
        "package": told["name"],
        "version": told["version"],
        "licence": told["license"],
        "copyright": copyright_of(package),
        "file": "dist/index.d.ts",
        "operations": {name: reader.operation(*where) for name, where in OPERATIONS.items()},
        "schemas": dict(sorted(reader.schemas.items())),
    }
    write(HERE / "gitea.json", facts)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
