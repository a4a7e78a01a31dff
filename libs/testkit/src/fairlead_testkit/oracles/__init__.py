"""Oracles: what is right by brute force or by a paper, found without the code under test."""
