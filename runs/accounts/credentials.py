"""Whether an agent is logged in, or works without: with an API key or a provider of its own."""

from __future__ import annotations

import logging

from runs.agents import check_rules
from runs.core.ports import Lab, SeamError
from runs.models import AgentProfile

logger = logging.getLogger(__name__)


def is_logged_in(lab: Lab, profile: AgentProfile) -> bool | None:
    """What the agent says of its login now; None when it did not say.

    Where its check is known to overlook API keys and other providers, a no is asked about again.
    """
    answer = lab.login.check(profile.login_command, profile.env)
    again = check_rules.second_question(profile.login_command, profile.argv)
    if answer is not False or not again:
        return answer
    try:
        said = lab.programs.ask(again, profile.env)
    except SeamError as error:
        logger.info("login was not asked again", extra={"error": str(error)})
        return answer
    known = check_rules.has_credentials(said.out)
    return answer if known is None else known
