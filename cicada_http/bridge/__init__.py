"""Runs an ASGI application on Lambda's Python runtime with streamed responses.

Lambda streams responses natively for Node.js only. Other languages stream by the contract for custom runtimes: the
process speaks the Runtime API itself. ``AWS_LAMBDA_EXEC_WRAPPER`` names a script that starts this package in place of
Lambda's own Python client::

    exec "$1" -m cicada_http.bridge

``events``       a function URL's event (payload format 2.0) becomes an ASGI scope and a body
``runtime_api``  the Runtime API: the next invocation, streamed responses, errors before and within a response
``exchange``     one request and its response, between the application and the Runtime API
``lifespan``     the application's start-up and shutdown
``serving``      the loop

Sources: AWS Lambda Developer Guide, "Building a custom runtime", "Using the Lambda runtime API", "Response streaming
for Lambda functions", "Modifying the runtime environment"; ASGI specification, "HTTP & WebSocket ASGI Message Format".
"""
