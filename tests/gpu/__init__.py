"""A GPU that does not exist, for tests: README.md."""
