"""What any program needs: files that are written whole, users' own files, signals."""
