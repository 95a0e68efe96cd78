"""Stores for many nested windows: *Aggregate Sharing for User-Defined Windows*."""
