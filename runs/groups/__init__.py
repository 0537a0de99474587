"""Task groups: tasks, workers, monitors, signal files."""
