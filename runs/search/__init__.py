"""Search, the palette and the sheet of keyboard shortcuts."""
