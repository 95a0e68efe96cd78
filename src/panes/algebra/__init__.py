"""Monoids over columns: what every aggregate is made of, and nothing about windows."""
