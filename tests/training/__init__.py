"""Whole networks, trained side by side with the reference from one seed."""
