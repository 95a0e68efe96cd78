"""Bounded DataFrames."""
