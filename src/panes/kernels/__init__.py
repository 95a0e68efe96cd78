"""Roll kernels: windows from panes. One algorithm a file, all in one test matrix.

A kernel takes a monoid, the partials of panes and the run of panes that each answer needs, and
returns one partial per answer. Kernels of one query read panes sorted by group and position
(`choose.roll` picks one); the two of a register, `disjoint_table` and `prefix_differences`, read
tables of panes by keys.
"""
