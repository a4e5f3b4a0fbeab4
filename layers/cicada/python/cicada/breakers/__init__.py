"""Circuit breakers: what keeps failing is not waited for, and is tried again by one call at a time."""
