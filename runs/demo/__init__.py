"""The demo: a small project with three issues, and a scripted agent that really does them."""
