"""What a project proves and how: completion policy, commands, switches, reviewers; its page *Checks*."""
