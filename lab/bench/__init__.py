"""Benchmarks: seeded workloads, rivals that do the same work, answers checked before timing."""
