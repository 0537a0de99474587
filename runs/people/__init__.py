"""People: accounts, roles, login, passkeys, tokens, throttling."""
