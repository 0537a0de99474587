"""What starts next and why not: eligibility, slots, the launch pass, automatic work."""
