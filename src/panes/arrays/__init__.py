"""Columns and threads, without windows: numbers for keys, slots, sorting, compiled loops."""
