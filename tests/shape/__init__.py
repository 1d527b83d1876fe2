"""The shape of the source in figures: ``make shape`` prints them beside those of the tree before the restructuring."""
