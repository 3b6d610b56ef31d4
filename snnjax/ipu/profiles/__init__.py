"""What a run would have cost, measured and written as text, tables, pictures and a page."""
