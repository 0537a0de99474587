"""Which values are secret, and masking them in everything that is kept or shown."""
