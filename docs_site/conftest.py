"""Examples in docstrings run as tests, but for modules that need what only the site needs."""

collect_ignore = ["griffe_extension.py", "run_notebooks.py"]
