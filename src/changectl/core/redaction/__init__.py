"""Secret values leave what is shown or recorded."""
