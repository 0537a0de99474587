"""What Prometheus reads of labsite: who may, which figures, and their text format."""
