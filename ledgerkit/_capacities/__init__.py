"""How engines turn memory into cache: one file for each engine's rules."""
