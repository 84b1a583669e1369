"""Is a record whole? Its chain, its own account of itself, and what hosts witnessed."""
