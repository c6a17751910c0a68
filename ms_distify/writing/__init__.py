"""Edits to source, in one pass: text is put into the user's text, and all else stays as it is."""
