"""Examples in docstrings run with the others, but for the module that needs griffe."""

collect_ignore = ["griffe_extension.py"]
