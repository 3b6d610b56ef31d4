"""The tables of the arrays and static values of own ops (`snnjax._schema`)."""
