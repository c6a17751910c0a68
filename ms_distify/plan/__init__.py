"""Decisions that several rules share: where the start-up goes, what names it gives, how they reach a call."""
