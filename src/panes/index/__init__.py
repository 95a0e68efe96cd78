"""Indexes of live windows: which values a window holds, how often, and in which rows."""
