"""How every act says no."""

from __future__ import annotations

from collections.abc import Mapping


class ActRefused(Exception):
    """The act was not done, and nothing was changed.

    `text` says to a person why, and what to do; `code` says it to a program. `fields` has for each
    wrong field why, `field` being the first of them; both are empty when no field is at fault.
    """

    code = "refused"

    def __init__(
        self,
        text: str,
        *,
        code: str = "",
        field: str = "",
        fields: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.code = code or self.code
        self.fields = dict(fields or ({field: text} if field else {}))

    @property
    def field(self) -> str:
        """The first field that is wrong."""
        return next(iter(self.fields), "")
