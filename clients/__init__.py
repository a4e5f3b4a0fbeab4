"""What speaks to a deployment of Cicada: the Python client, the command line and the web page."""
