"""The built-in catalogue, and what other distributions add to it.

Nothing is re-exported here: the functions ``models`` and ``hardware`` would hide the modules of the
same names.
"""
