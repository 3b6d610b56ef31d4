"""Passes over a whole block, once its operations are lowered."""
