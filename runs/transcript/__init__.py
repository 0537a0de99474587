"""What agents print and report: parsing, storing and showing it."""
