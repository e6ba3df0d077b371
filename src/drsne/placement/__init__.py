"""Places of new rows in a fitted map, which stays fixed (docs/theory.md, section 12)."""
