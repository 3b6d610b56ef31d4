"""Networks as graphs of blocks; `snnjax` has the names that users need."""
