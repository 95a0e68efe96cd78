"""Answers on demand, from what a register has stored."""
