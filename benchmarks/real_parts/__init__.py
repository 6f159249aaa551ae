"""Parts of the real-data benchmark."""
