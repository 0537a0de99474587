"""Commands that agents and people have labsite run, and the word of agents that gates check."""
