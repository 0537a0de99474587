"""Manual sessions: sessions that a person drives, without an issue."""
