"""What a run's agent said and did, message by message, out of its own records."""
