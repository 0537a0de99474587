"""What a forge's rules on branch names mean for the branches of runs: pure, over its answers.

GitHub: the rules that apply to one name, which need not be there (docs.github.com, REST API endpoints
for rules, “Get rules for a branch”); older branch protection is not among them. Gitea and Forgejo: the
protections of a repository, whose names are globs; those without one come first, then the order is
that of their priority (its source: models/git/protected_branch_list.go).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from trackers.forges import reading

# GitHub's rules under which a push to such a branch is refused, with what they ask for.
_REFUSES = {
    "update": "lets nobody push to",
    "pull_request": "takes changes by pull request only on",
    "required_status_checks": "takes only commits whose checks passed on",
    "required_signatures": "takes only signed commits on",
    "required_deployments": "takes only what was deployed on",
    "merge_queue": "has a merge queue on",
    "workflows": "takes only commits whose workflows passed on",
}
_CREATION = "lets nobody create"
_NO_FORCE = "non_fast_forward"
_MAY_PASS = ("always", "exempt")
_MOST_PATTERN, _MOST_REPEATS = 200, 3
_REPEATS_GROUP = re.compile(r"\)[*+?{]")
_REPEAT = re.compile(r"(?<!\\)[*+{]")
_GLOB = re.compile(r"[*?\[{]")
_STARS, _MOST_STARS = re.compile(r"\*+"), 4  # more would take long to try
_GLOB_PARTS = {"**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}


def from_github(
    rules: Sequence[Any], passes: Collection[int], prefix: str, key: str
) -> tuple[bool | None, str]:
    """Whether agents can push branches with this prefix, in words; None where it cannot be told.

    `passes`: the rulesets that do not count for the account.
    """
    counts = [one for one in rules if reading.value(one, "ruleset_id") not in passes]
    kinds = [reading.text(one, "type") for one in counts]
    if "creation" in kinds:
        return False, _refused(_CREATION, prefix)
    for kind, text in _REFUSES.items():
        if kind in kinds:
            return False, _refused(text, prefix)
    patterns = [one for one in counts if reading.text(one, "type") == "branch_name_pattern"]
    fits = [_fits(reading.value(one, "parameters"), f"{prefix}{key}") for one in patterns]
    if False in fits:
        pattern = reading.text(patterns[fits.index(False)], "parameters", "pattern")
        return False, f"{_refused(_CREATION, prefix)} It asks for names by the pattern {pattern}"
    if None in fits:
        pattern = reading.text(patterns[fits.index(None)], "parameters", "pattern")
        text = f"Whether branches named {prefix}… fit the pattern {pattern} could not be told."
        return None, text
    text = f"No ruleset keeps agents from pushing branches named {prefix}…"
    return True, f"{text}, but none lets them force a push." if _NO_FORCE in kinds else f"{text}."


def from_gitea(
    protections: Sequence[Any], person: str, prefix: str, key: str
) -> tuple[bool | None, str]:
    """The same. `person`: whose the token is; empty when unknown."""
    dear = [name for one in protections if len(_STARS.findall(name := _name(one))) > _MOST_STARS]
    if dear:
        text = f"Whether branches named {prefix}… fit the rule {dear[0]} could not be told."
        return None, text
    rule = _applying(protections, f"{prefix}{key}")
    if rule is None:
        return True, f"No rule keeps agents from pushing branches named {prefix}…."
    name = _name(rule)
    if reading.value(rule, "enable_push") is not True:
        return False, _refused(_CREATION, prefix, name)
    if reading.value(rule, "require_signed_commits") is True:
        return False, _refused(_REFUSES["required_signatures"], prefix, name)
    if reading.value(rule, "enable_push_whitelist") is not True:
        return True, f"The rule {name} lets agents push branches named {prefix}…."
    people = reading.value(rule, "push_whitelist_usernames")
    if person and isinstance(people, list) and person in people:
        return True, f"The rule {name} lets {person} push branches named {prefix}…."
    if not person or reading.value(rule, "push_whitelist_teams"):
        text = f"The rule {name} lets only some people push branches named {prefix}…."
        return None, f"{text} Whether the account is one of them could not be told."
    return False, _refused(f"lets {person} not push", prefix, name)


def _refused(what: str, prefix: str, rule: str = "") -> str:
    which = f"the rule {rule}" if rule else "the rule"
    text = f"The forge {what} branches named {prefix}…."
    return f"{text} Change the prefix under Settings, Set-up, or {which} on the forge."


def _fits(parameters: Any, branch: str) -> bool | None:
    """Whether a name fits a pattern of GitHub's; None for one that is not safe to try here."""
    pattern, operator = reading.text(parameters, "pattern"), reading.text(parameters, "operator")
    found: bool | None
    match operator:
        case "starts_with":
            found = branch.startswith(pattern)
        case "ends_with":
            found = branch.endswith(pattern)
        case "contains":
            found = pattern in branch
        case "regex":
            found = _matches(pattern, branch)
        case _:
            found = None
    is_negated = reading.value(parameters, "negate") is True
    return found if found is None else found is not is_negated


def _matches(pattern: str, branch: str) -> bool | None:
    """By GitHub's engine each pattern takes linear time; here only those that do so too are tried."""
    is_dear = len(_REPEAT.findall(pattern)) > _MOST_REPEATS or _REPEATS_GROUP.search(pattern)
    if len(pattern) > _MOST_PATTERN or is_dear:
        return None
    try:
        return re.search(pattern, branch, re.ASCII) is not None
    except re.error:
        return None


def _applying(protections: Sequence[Any], branch: str) -> Any | None:
    """The protection that counts for a name; None when none does."""
    exact = [one for one in protections if _name(one) == branch]
    if exact:
        return exact[0]
    globs = [one for one in protections if _GLOB.search(_name(one))]
    globs.sort(key=lambda one: _priority(one))
    return next((one for one in globs if _fits_glob(_name(one), branch)), None)


def _fits_glob(glob: str, branch: str) -> bool:
    """One that is written wrongly fits nothing, as on the server."""
    try:
        return re.fullmatch(_by_glob(glob), branch) is not None
    except re.error:
        return False


def _name(protection: Any) -> str:
    return reading.text(protection, "rule_name") or reading.text(protection, "branch_name")


def _priority(protection: Any) -> int:
    found = reading.value(protection, "priority")
    return found if isinstance(found, int) else 0


def _by_glob(glob: str) -> str:
    """A glob as a regular expression: `*` ends at a slash, `**` does not."""
    depth, made = 0, ""
    for part in re.findall(r"\*\*|\\.|\[!?[^\]]+\]|.", glob):
        depth += (part == "{") - (part == "}")
        made += _GLOB_PARTS.get(part) or _part(part)
    return made + ")" * max(0, depth)


def _part(part: str) -> str:
    if part.startswith("[") and len(part) > 2:
        inner = re.escape(part[1:-1].lstrip("!")).replace("\\-", "-")
        return f"[{'^' if part[1] == '!' else ''}{inner}]"
    return re.escape(part[-1])


def rulesets_of(rules: Sequence[Any]) -> list[int]:
    """The rulesets that these rules belong to."""
    found = (reading.value(one, "ruleset_id") for one in rules if isinstance(one, Mapping))
    return sorted({one for one in found if isinstance(one, int)})


def is_passed_over(ruleset: Any) -> bool:
    """Whether a ruleset lets the account that asked go its own way."""
    return reading.text(ruleset, "current_user_can_bypass") in _MAY_PASS
