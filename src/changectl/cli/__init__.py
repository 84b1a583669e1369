"""The commands: one file each, loaded when asked for; files with an underscore in front are shared helpers."""
