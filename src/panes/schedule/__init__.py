"""Which windows are due when progress moves: sliding groups, their graph, their timers."""
