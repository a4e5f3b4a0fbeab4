# What a newcomer types. `make up` and `make test` set up what they need by themselves.

PYTHON ?= python3
VENV := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup up down clean test unit coverage simulate chaos drill load lint lock sbom audit release bench packages docs bootstrap deploy

# The tests run side by side: numpy's own threads would only contend for the processors.
export OPENBLAS_NUM_THREADS := 1
# Compiled modules are kept: without them every test run, and every process that a test starts, compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE
# Node 20 works; the CDK says at every start that it is past its end of life.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install the pinned packages and the CDK CLI, where they are not there yet
	@$(PYTHON) cicada_local/install.py

up: setup ## deploy to a cloud on this machine, load the sample, serve the page, until Ctrl-C; AUTH=1 adds sign-in
	@$(VENV)/python -m cicada_local up $(if $(filter-out 0,$(AUTH)),--auth)

down: setup ## stop it from another terminal
	@$(VENV)/python -m cicada_local down

clean: setup ## stop it, and remove its state and all that was built
	@$(VENV)/python -m cicada_local clean
	@rm -rf cdk.out build dist

test: setup ## run every test: units, wire, templates, then the deployed thing end to end
	@$(VENV)/python -m pytest tests/unit tests/wire tests/template -n 2 --dist worksteal
	@$(VENV)/python -m pytest tests/e2e -n 3 --dist loadfile --no-loadscope-reorder

unit: setup ## run the unit tests alone
	@$(VENV)/python -m pytest tests/unit -n 2 --dist worksteal

coverage: setup ## how much of the chain, its strategies and the delivery the tests reach: at least 95 % of branches
	@$(VENV)/python -m pytest tests/unit tests/wire/test_delivery_log.py tests/wire/test_breakers_store.py \
		tests/wire/test_semantic_cache_dynamodb.py tests/wire/test_conversation_sessions.py -n 2 --dist loadfile \
		--cov=cicada.answering --cov=cicada.attempts --cov=cicada.breakers --cov=cicada.conversation \
		--cov=cicada.delivery --cov=cicada.semantic_cache --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=95

simulate: setup ## a million injected faults over the code that runs in Lambda; a failure prints its seed (minutes)
	@$(VENV)/python -m tests.simulation --faults 1000000

chaos: setup ## kill real workers and cut real sockets over the local cloud, and watch (minutes)
	@$(VENV)/python -m tests.chaos --kills 200

drill: setup ## break one thing after another in the local cloud; show alarm, query and mend of each (minutes)
	@$(VENV)/python -m tests.drills

load: setup ## 300 askers at a human pace over the local cloud, 5,000 questions, and what they waited for (half an hour)
	@$(VENV)/python -m tests.load --report docs/load.md

lint: setup ## check style and types
	@$(VENV)/python -m ruff check .
	@$(VENV)/python -m ruff format --check .
	@$(VENV)/python -m mypy
	@MYPYPATH=lambdas/agent_tools $(VENV)/python -m mypy lambdas/agent_tools/*.py
	@MYPYPATH=lambdas/answer $(VENV)/python -m mypy lambdas/answer/*.py
	@MYPYPATH=lambdas/corpus $(VENV)/python -m mypy lambdas/corpus/*.py
	@MYPYPATH=lambdas/message_processor $(VENV)/python -m mypy lambdas/message_processor/*.py
	@MYPYPATH=lambdas/uploads $(VENV)/python -m mypy lambdas/uploads/*.py
	@node_modules/.bin/tsc -p packages/tsconfig.json

lock: setup ## compile the locks after a requirement has changed (docs/supply-chain.md)
	@$(VENV)/python -m supply_chain.lock

sbom: setup ## write bills of materials (CycloneDX) to .cicada/sbom/, for the project and each layer
	@$(VENV)/python -m supply_chain.sbom

audit: setup ## look up known vulnerabilities and check licences; needs network (1: found something, 3: incomplete)
	@$(VENV)/python -m supply_chain.audit

release: setup ## keep what the next releases are tested against, of the release that is being cut (docs/releases.md)
	@$(VENV)/python -m supply_chain.release

bench: setup ## measure what the docs claim (minutes)
	@$(VENV)/python -m benchmarks.classifier
	@$(VENV)/python -m benchmarks.retrieval_quality
	@$(VENV)/python -m benchmarks.delivery_layout
	@$(VENV)/python -m benchmarks.import_time
	@$(VENV)/python -m benchmarks.aws_calls
	@$(VENV)/python -m benchmarks.capacity
	@$(VENV)/python -m benchmarks.semantic_cache
	@$(VENV)/python -m benchmarks.first_chunk

docs: setup ## build the documentation's site into .cicada/site
	@$(VENV)/python -m docs_site

packages: setup ## build the npm packages cicada-client and cicada-chat into dist/
	@node packages/build.mjs

bootstrap: setup ## prepare your AWS account for the CDK, once for each Region (docs/deploy.md)
	@$(VENV)/python -m cicada_deploy bootstrap $(ARGS)

deploy: setup ## check, deploy to your AWS account, and check again; completes what was cut off (docs/deploy.md)
	@$(VENV)/python -m cicada_deploy deploy $(ARGS)
