"""The log of a request, and its delivery to the sockets that tail it."""
