"""The report of a `Profile`: as text, as matplotlib figures, and as one HTML page."""
