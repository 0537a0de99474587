"""What comes after a run: going on with it, starting it anew, and changes that a review asks for."""
