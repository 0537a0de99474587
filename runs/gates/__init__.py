"""Gates: an agent's *done* is a claim that a project believes after four proofs."""
