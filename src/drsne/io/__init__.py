"""Files: tables of users, model files, and writing that never leaves half a file."""
