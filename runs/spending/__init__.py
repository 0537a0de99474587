"""What runs use of tokens and money: by day, and within the limits that people set."""
