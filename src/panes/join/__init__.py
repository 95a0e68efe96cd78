"""Joins of streams whose windows bound what is stored: which rows match, which may still do so."""
