"""Django's database engines, with the one difference of `labsite.engines.columns`."""
