"""The ops, one per file, each with its equation, reference, derivative and targets; `snnjax` has their names."""
