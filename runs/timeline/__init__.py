"""What is told, in order: announcements, the audit log, the order of commits."""
