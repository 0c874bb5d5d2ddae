"""Pure questions about IR that passes ask; nothing here changes IR."""
