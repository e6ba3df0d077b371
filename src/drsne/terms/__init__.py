"""The loss of a map, a sum of terms: the equations of docs/theory.md on arrays (docs/architecture.md)."""
