"""Edits to source, in one pass: text is put into the user's text, so everything outside the edits stays as it is."""
