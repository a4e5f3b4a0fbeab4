"""What other systems call: typed requests in, typed responses out, over the library."""
