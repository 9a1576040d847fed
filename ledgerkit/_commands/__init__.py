"""One module per shell command; each has ``add_arguments(parser)`` and ``run(arguments)``."""
