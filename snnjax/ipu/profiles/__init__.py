"""Profiles of modelled runs, as text, tables, figures and an HTML page."""
