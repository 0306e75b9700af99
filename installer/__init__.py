"""Slipway: an installer for local AI that says before the first byte what will run, and proves that it does."""

__version__ = "0.1.0"
