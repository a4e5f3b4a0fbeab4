"""HTTP access: one function behind a function URL that streams its responses."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.builds import ROOT
from stacks.function import CicadaFunction, Functions
from stacks.settings import Settings
from stacks.sign_in import TokenIssuer

MEMORY_MB = 512
"""Importing MCP's SDK takes CPU, which grows with the memory."""
MAX_TIMEOUT_S = 900
"""Lambda's longest."""
BEYOND_AN_ANSWER_S = 30
"""What a request may take besides the answer: to connect, to search, to be ended before the time is over."""
WRAPPER = "/var/task/bridge.sh"
BRINGS = tuple(ROOT / name for name in ("cicada_client", "cicada_http", "cicada_mcp"))
"""The packages that lie beside the handler."""
PREFLIGHT_MINUTES = 10

_HEADERS = ("accept", "authorization", "content-type", "last-event-id")
_MCP_HEADERS = ("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id")


class HttpAccess(Construct):
    """The function and its URL. Everybody may call it; the deployment's WebSocket API checks each request's token."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        functions: Functions,
        websocket_url: str,
        issuer: TokenIssuer | None,
    ) -> None:
        """Make it.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's.
            functions: makes the stack's functions.
            websocket_url: where the deployment's clients connect.
            issuer: whose tokens are accepted; None where none is asked for.
        """
        super().__init__(scope, id)
        http = settings.http
        self.made: CicadaFunction = functions.make(
            "Http",
            "http",
            "http",
            timeout_s=min(MAX_TIMEOUT_S, settings.budget.request_time_s + BEYOND_AN_ANSWER_S),
            memory_mb=MEMORY_MB,
            environment={
                "AWS_LAMBDA_EXEC_WRAPPER": WRAPPER,
                "WEBSOCKET_URL": websocket_url,
                "ALLOWED_ORIGINS": ",".join(http.allowed_origins),
                **(
                    {"AUTH": "none"}
                    if issuer is None
                    else {"JWT_ISSUER": issuer.issuer, "JWT_SCOPES": " ".join(issuer.scopes)}
                ),
            },
            concurrency=http.concurrency,
            brings=BRINGS,
        )
        self.url: str = self.made.function.add_function_url(
            auth_type=lambda_.FunctionUrlAuthType.NONE,
            invoke_mode=lambda_.InvokeMode.RESPONSE_STREAM,
            cors=self._cors(http.allowed_origins),
        ).url
        """The address, with a closing slash."""

    @staticmethod
    def _cors(origins: tuple[str, ...]) -> lambda_.FunctionUrlCorsOptions | None:
        if not origins:
            return None
        return lambda_.FunctionUrlCorsOptions(
            allowed_origins=list(origins),
            allowed_methods=[lambda_.HttpMethod.GET, lambda_.HttpMethod.POST],
            allowed_headers=[*_HEADERS, *_MCP_HEADERS],
            exposed_headers=["x-request-id"],
            max_age=Duration.minutes(PREFLIGHT_MINUTES),
        )
