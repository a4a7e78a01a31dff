"""Inputs of tests: messages with defaults, recorded pools, and random documents for properties and fuzzing."""
