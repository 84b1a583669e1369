"""What engines and hosts tell of themselves while they work, by canonical names."""
