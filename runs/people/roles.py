"""Who a person is here: one who looks, one who acts, or one who also minds the others."""

from __future__ import annotations

from enum import StrEnum

MAY_ACT = "runs.act"  # the permission that makes an operator


class Role(StrEnum):
    """What a person may do. Each role may do what the one before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def words(self) -> str:
        """The role with what it allows, for a choice."""
        return _WORDS[self]


_WORDS = {
    Role.VIEWER: "viewer: sees everything, changes nothing",
    Role.OPERATOR: "operator: starts and stops runs, writes issues",
    Role.ADMIN: "admin: also people, budgets and agent profiles",
}


def role_of(*, is_admin: bool, may_act: bool) -> Role:
    if is_admin:
        return Role.ADMIN
    return Role.OPERATOR if may_act else Role.VIEWER
