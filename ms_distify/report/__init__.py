"""Findings to text, for people."""
