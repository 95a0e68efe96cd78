"""Jobs that are killed in the tests and in `make torture-kills`, and nowhere else."""
