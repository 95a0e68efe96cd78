"""Tooling around Panes that no user installs: benchmarks, and the experiments of the papers.

It imports `panes` and is never imported by it. ``python -m lab bench`` and ``python -m lab papers``
run it in a checkout; `panes bench` and `panes papers` are the same commands.
"""
