"""Source to facts: what a script says, without opinions about it."""
