"""The local cloud in one process: every stand-in behind one address."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from cicada.page.files import CONFIG
from cicada_local import deployed, interpreter, queues, schedules
from cicada_local.agents.brain import next_step
from cicada_local.agents.classic import ClassicAgents
from cicada_local.agents.classic_reading import reading
from cicada_local.agents.classic_store import AgentStore
from cicada_local.agents.harness import HarnessRuntime
from cicada_local.agents.harness_store import HarnessStore
from cicada_local.bedrock import server as bedrock
from cicada_local.bedrock.answerer import ExtractiveAnswerer
from cicada_local.bedrock.control import BedrockControl
from cicada_local.bedrock.forwarding import Forwarding, forwarding_from
from cicada_local.bedrock.guardrails import GuardrailStore
from cicada_local.bedrock.minilm import CachedEmbedder
from cicada_local.calls import Call, CallLog
from cicada_local.cloudfront.edge import Edge, EdgeResponse, Laptop
from cicada_local.cloudfront.origin import BucketOrigin
from cicada_local.cloudfront.server import CloudFront
from cicada_local.cloudwatch import CloudWatch, MetricClock, MetricStore, sources
from cicada_local.control import Control
from cicada_local.faults import Faults
from cicada_local.front import Front
from cicada_local.functions import FunctionConfig, FunctionService, Permits, ServiceLimits
from cicada_local.functions.errors import RoleRefused
from cicada_local.functions.urls import FunctionUrls
from cicada_local.gateway import GatewayControl, WebSocketGateway
from cicada_local.insights import GroupLogs, Insights, function_groups
from cicada_local.issuer import Issuer
from cicada_local.kendra import Kendra
from cicada_local.motoserver import MotoServer
from cicada_local.object_events import ObjectEvents
from cicada_local.permissions import Principals, RoleNotAssumable
from cicada_local.permissions.enforcement import everybody_may_invoke_by_url, service_may_invoke
from cicada_local.places import ACCOUNT_ID, ONE_MATH_THREAD, REGION, Places
from cicada_local.replication import Replication
from cicada_local.rule_targets import RuleTargets
from cicada_local.s3vectors import S3Vectors, VectorStore
from cicada_local.state import Keeper
from cicada_local.state_store import StateStore
from cicada_local.table_backups import TableBackups

logger = logging.getLogger(__name__)

SAVE_INTERVAL_S = 1.0
"""A process that is killed loses at most what came in during this time."""

CALLBACK_VARIABLE = "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI"
_ISSUER = "issuer"
"""What the issuer's state is remembered by."""


class Cloud:
    """All stand-ins, wired to each other."""

    def __init__(
        self,
        port: int,
        places: Places,
        *,
        environment: Mapping[str, str],
        stop: Callable[[], None],
        metric_minute_s: float = 60.0,
        concurrency: int | None = None,
    ) -> None:
        """Load everything; takes about two seconds, and no request is answered yet.

        Args:
            port: where the front server will listen.
            places: its folders.
            environment: further variables of every function, over those of the stacks.
            stop: called when somebody asks for the end over the control endpoints.
            metric_minute_s: real seconds that are one of CloudWatch's minutes.
            concurrency: invocations of functions at once; what this machine bears when not given.
        """
        self.endpoint_url = f"http://localhost:{port}"
        self.faults = Faults()
        self.ready = False
        """Whether clients are told the deployment's address."""
        self.corpus: dict[str, Any] = {}
        """What the page is told of what is loaded: ``examples`` of questions, and ``episodes``."""
        self.deployed: Callable[[], object] = lambda: None
        """Called when a change set has been executed, before its caller knows."""
        self._environment = dict(environment)
        self._principals = Principals()
        self._moto = MotoServer(port, self._principals)
        self._store = StateStore(places.state)
        self.keeper = Keeper(self._store, self._moto)
        self._embedder = CachedEmbedder(places.embeddings)
        self._vectors = VectorStore(places.vectors)
        from cicada_local.cloudformation import (
            agents,
            cloudfront,
            custom,
            function_urls,
            guardrails,
            harnesses,
            monitoring,
            vectors,
        )

        vectors.serve(self._vectors)
        agent_store = AgentStore()
        agents.serve(agent_store)
        guardrail_store = GuardrailStore()
        guardrails.serve(guardrail_store)
        harness_store = HarnessStore()
        harnesses.serve(harness_store)
        metrics = MetricStore(MetricClock(metric_minute_s))
        self._cloudwatch = CloudWatch(metrics, self.faults, monitoring.publish)
        self._cloudwatch.samples = sources.Samples(
            metrics, lambda: interpreter.executions(ACCOUNT_ID, REGION), sources.queue_lengths
        )
        monitoring.serve(self._cloudwatch)
        from moto.awslambda.models import lambda_backends
        from moto.cognitoidp.models import cognitoidp_backends

        self.issuer = Issuer(
            lambda: dict(cognitoidp_backends[ACCOUNT_ID][REGION].user_pools),
            self._moto.lock("cognito-idp"),
            self.faults,
            local=self._local_url,
        )
        functions = FunctionService(
            deployed.DeployedFunctions(lambda_backends[ACCOUNT_ID][REGION]).lookup,
            work_dir=places.home,
            endpoint_url=self.endpoint_url,
            overrides=self._function_variables,
            faults=self.faults,
            reserved=deployed.reserved_concurrency,
            log=self._cloudwatch.log_line,
            metrics=sources.LambdaMetrics(metrics),
            send=queues.send_in_role,
            limits=ServiceLimits.stretched(metrics.clock.real_seconds(1), concurrency),
        )
        schedules.install()
        TableBackups(metrics.clock.real_seconds(1)).install()
        targets = RuleTargets(
            functions.invoke,
            permits=_permits("events.amazonaws.com"),
            count=lambda name, rule: metrics.count("AWS/Events", name, {"RuleName": rule}),
            send=queues.send_for_rule,
            second_s=metrics.clock.real_seconds(1),
        )
        self._schedules = schedules.Schedules(
            schedules.deployed_rules,
            functions.invoke,
            now=lambda: datetime.fromtimestamp(metrics.clock.now(), UTC),
            permits=_permits("events.amazonaws.com"),
            targets=targets,
        )
        self._object_events = ObjectEvents(targets)
        self._replication = Replication(self._moto.lock("s3"), metrics.clock.real_seconds(1))
        gateway = WebSocketGateway(
            deployed.lookup_api,
            functions.invoke,
            faults=self.faults,
            permits=_permits("apigateway.amazonaws.com"),
            count=sources.GatewayMetrics(metrics),
            log=GroupLogs(places.logs).write,
        )
        calls = CallLog()
        page = CloudFront(
            lambda: cloudfront.DISTRIBUTIONS,
            Edge(
                BucketOrigin(self._moto.lock("s3")),
                Laptop(local=self._local, instead=self._page_file),
            ),
        )
        control = Control(
            faults=self.faults,
            calls=calls,
            functions=functions,
            gateway=GatewayControl(gateway),
            executions=lambda: interpreter.executions(ACCOUNT_ID, REGION),
            schedules=self._schedules,
            health=self.describe,
            save=self._save,
            stop=stop,
        )
        front = Front(
            self._moto,
            page,
            faults=self.faults,
            calls=calls,
            principals=self._principals,
            answered=self._answered,
            observed=sources.observe_calls(metrics),
            origin_on_aws=self._origin_on_aws,
        )
        self._app = front.application(
            control,
            functions,
            gateway,
            _Bedrock(self._embedder, self.faults, forwarding_from(os.environ), guardrail_store),
            BedrockControl(self.faults),
            S3Vectors(self._vectors, self.faults),
            Kendra(self.faults),
            ClassicAgents(
                agent_store,
                reading(next_step),
                functions.invoke,
                self.faults,
                permits=_permits("bedrock.amazonaws.com"),
            ),
            HarnessRuntime(harness_store, self.faults),
            Insights(lambda: function_groups(places.logs), self.faults),
            self._cloudwatch,
            custom.CustomResourceResponses(),
            self.issuer,
        )
        self.function_urls = FunctionUrls(function_urls.deployed, functions, everybody_may_invoke_by_url)
        self._runner = web.AppRunner(self._app, auto_decompress=False, access_log=None, shutdown_timeout=2.0)
        self._background: list[asyncio.Task[None]] = []

    async def start(
        self,
        sockets: list[socket.socket],
        issuer_sockets: list[socket.socket],
        function_url_sockets: list[socket.socket],
    ) -> None:
        """Answer requests; also those to the issuer and to function URLs, if there are sockets for them."""
        if issuer_sockets:
            await self.issuer.start(issuer_sockets)
        if function_url_sockets:
            await self.function_urls.start(function_url_sockets)
        await self._runner.setup()
        for one in sockets:
            await web.SockSite(self._runner, one).start()

    async def restore(self) -> None:
        """Fill the deployed buckets and tables with what was saved; keep saving, and run schedules, from now on."""
        await asyncio.to_thread(self.keeper.restore)
        self.issuer.restore(json.loads(self.marked(_ISSUER) or "{}"))
        works = (self._save_now_and_then(), self._schedules.run(), self._cloudwatch.run())
        self._background = [asyncio.create_task(work) for work in works]

    async def close(self) -> None:
        """End the connections and the functions' processes, and save."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.function_urls.close()
        await self._runner.cleanup()
        await self.issuer.close()
        await asyncio.to_thread(self._save)
        self._moto.close()
        self._store.close()
        self._vectors.close()
        self._embedder.close()

    def describe(self) -> dict[str, Any]:
        """Status, addresses and outputs, as plain data."""
        outputs = self._outputs() if self.ready else {}
        return {
            "status": "ready" if self.ready else "starting",
            "endpointUrl": self.endpoint_url,
            "webSocketUrl": self._served_url(),
            "outputs": outputs,
        }

    def mark(self, name: str, value: str) -> None:
        """Remember a value with the state."""
        self._store.mark(name, value)

    def marked(self, name: str) -> str | None:
        """A value remembered with the state."""
        return self._store.marked(name)

    def _answered(self, call: Call, body: bytes, status: int) -> None:
        self.keeper.changed(call, body, status)
        self._object_events.answered(call, body, status)
        self._replication.answered(call, body, status)
        if (call.service, call.operation) == ("cloudformation", "ExecuteChangeSet"):
            self.deployed()

    def _page_file(self, path: str, found: EdgeResponse) -> EdgeResponse:
        """A file of the page. Its configuration names what is loaded, too, and is told once all is."""
        if path != f"/{CONFIG}":
            return found
        json_type = {"content-type": "application/json", "cache-control": "no-cache"}
        if not self.ready:
            return EdgeResponse(503, json_type, b'{"error": "The stacks are still being deployed."}')
        config = json.loads(self._local(found.body.decode()))
        return EdgeResponse(found.status, json_type, json.dumps({**config, **self.corpus}).encode())

    def _local(self, text: str) -> str:
        """A text of the stacks with this machine's addresses of the API and the issuer."""
        return self.issuer.stands_for(deployed.localised(self.endpoint_url, text))

    def _origin_on_aws(self, origin: str) -> str:
        """The deployed page's origin, for a page of this machine; :mod:`senders` has let no other in."""
        return deployed.outputs().get("PageUrl", origin)

    def _outputs(self) -> dict[str, str]:
        """The stacks' outputs, with the addresses of issuer and page on this machine."""
        return {
            name: self.function_urls.stands_for(self._local_url(self.issuer.stands_for(value)))
            for name, value in deployed.outputs().items()
        }

    def _local_url(self, url: str) -> str:
        """Where an address of the deployed page is served on this machine; any other address as it is."""
        page = deployed.outputs().get("PageUrl")
        return url if page is None or not url.startswith(page) else self.endpoint_url + url.removeprefix(page)

    def _served_url(self) -> str | None:
        url = deployed.outputs().get("WebSocketUrl") if self.ready else None
        return None if url is None else deployed.websocket_url(self.endpoint_url, url)

    def _function_variables(self, config: FunctionConfig) -> dict[str, str]:
        """Where the function's callbacks go, and its role's credentials.

        Raises:
            RoleRefused: the role does not trust Lambda, or not any more.
        """
        try:
            credentials = self._principals.credentials(config.role, config.name, service="lambda.amazonaws.com")
        except RoleNotAssumable as error:
            raise RoleRefused(f"The role defined for the function cannot be assumed by Lambda: {error}") from error
        ours = {name: self._local(value) for name, value in config.environment.items()}
        addresses = {name: value for name, value in ours.items() if value != config.environment[name]}
        variables = {**ONE_MATH_THREAD, **credentials, **addresses, **self._environment}
        callback = deployed.callback_url(self.endpoint_url, config.environment.get(CALLBACK_VARIABLE, ""))
        return variables if callback is None else {CALLBACK_VARIABLE: callback, **variables}

    def _save(self) -> None:
        self.keeper.save()
        if not self._background:
            return  # nothing was restored yet
        earlier = self.marked(_ISSUER) or "{}"
        now = json.dumps(self.issuer.stored(json.loads(earlier)))
        if now != earlier:
            self.mark(_ISSUER, now)

    async def _save_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(SAVE_INTERVAL_S)
            self._moto.forget_instances()
            try:
                await asyncio.to_thread(self._save)
            except Exception:
                logger.exception("the state could not be saved")


def _permits(service: str) -> Permits:
    """What functions' policies say of a service."""
    return lambda function_arn, source_arn: service_may_invoke(service, function_arn, source_arn)


class _Bedrock:
    """Amazon Bedrock Runtime, with the laptop's models."""

    def __init__(
        self, embedder: CachedEmbedder, faults: Faults, forwarding: Forwarding | None, guardrails: GuardrailStore
    ) -> None:
        self._guardrails = guardrails
        self._embedder = embedder
        self._faults = faults
        self._forwarding = forwarding

    def add_routes(self, app: web.Application) -> None:
        answerer = ExtractiveAnswerer(self._embedder)

        def embed(texts: Sequence[str]) -> list[list[float]]:
            vectors: list[list[float]] = self._embedder.embed(texts).tolist()
            return vectors

        bedrock.add_routes(
            app,
            answer=answerer.answer,
            fill=answerer.fill,
            embed=embed,
            rank=answerer.rank,
            faults=self._faults,
            forwarding=self._forwarding,
            guardrails=self._guardrails,
        )
