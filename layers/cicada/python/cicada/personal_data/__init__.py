"""What the table holds of one person: found, exported and erased on behalf of an administrator."""
