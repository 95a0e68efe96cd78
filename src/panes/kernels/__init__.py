"""Roll kernels: windows from panes. One algorithm a file, all in one test matrix.

Every kernel takes a monoid, the partials of panes sorted by group and position, and a `Cover`
(which run of panes each answer needs), and returns one partial per answer.
"""
