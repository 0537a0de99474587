"""What the branches of a project's runs are called: columns of a project, and what reads them."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models

from runs.core import naming


def fit_prefix(text: str) -> None:
    """Refuse a prefix with which git could make no branch."""
    try:
        naming.check_prefix(text)
    except ValueError as error:
        raise ValidationError(str(error)) from error


class ClaimNames(models.Model):
    """Columns of a project. A run keeps its branch, so what was chosen before stays known."""

    branch_prefix = models.CharField(
        "branches of runs begin with",
        max_length=naming.PREFIX_CHARACTERS,
        default=naming.BRANCH_PREFIX,
        db_default=naming.BRANCH_PREFIX,
        validators=[fit_prefix],
        help_text="The key of the issue follows, as in afk/7. Choose what nobody else uses: labsite "
        "takes such branches for claims and removes them once they are merged. Branches that are "
        "there keep their name.",
    )
    past_prefixes = models.JSONField(
        default=list,
        null=True,
        editable=False,
        help_text="With what branches of runs began before; they claim their issues still.",
    )

    class Meta:
        abstract = True

    @property
    def claim_prefixes(self) -> tuple[str, ...]:
        """With what branches begin that claim issues: what is set now, then what was before."""
        return tuple(dict.fromkeys((self.branch_prefix, *(self.past_prefixes or ()))))

    @property
    def managed_prefixes(self) -> tuple[str, ...]:
        """With what branches begin that labsite made, those of sessions of people included."""
        return (*self.claim_prefixes, naming.PERSON_PREFIX)

    def branch_for(self, key: str) -> str:
        """The branch by which a new run claims an issue."""
        return naming.branch_for(key, self.branch_prefix)

    def branches_for(self, key: str) -> list[str]:
        """The branches that claim an issue, that of a new run first."""
        return [naming.branch_for(key, prefix) for prefix in self.claim_prefixes]
