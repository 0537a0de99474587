"""Long work as one durable job: claimed, watched, tried again, recovered."""
