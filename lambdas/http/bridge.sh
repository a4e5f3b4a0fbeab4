#!/bin/sh
# Lambda runs this in place of its own Python client, with that client's command line as arguments.
PYTHONPATH="$LAMBDA_TASK_ROOT:/opt/python:$LAMBDA_RUNTIME_DIR" exec "$1" -m cicada_http.bridge
