"""Is a host fit for changes? From what was seen of it to checks, each with what to do."""
