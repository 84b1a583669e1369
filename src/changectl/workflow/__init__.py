"""The stories: apply, plan, revert. Each reads as named steps; all contact with the world goes through core's ports."""
