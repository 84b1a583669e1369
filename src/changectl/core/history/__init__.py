"""What the journal's events tell: runs, their stories, and what they took."""
