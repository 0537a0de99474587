"""Takes over what people have from Ralph: its hats as roles, its settings, memories and prompt."""
