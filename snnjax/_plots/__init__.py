"""The plots of `snnjax.plot`, by what they show."""
