"""Composite workflows: phases over task groups, one after the other."""
