"""What agents' own records show of the commands that they ran; gate 1 judges by it."""
