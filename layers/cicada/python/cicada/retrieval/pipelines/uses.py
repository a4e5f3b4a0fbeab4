"""What a stage's uses of models take, whatever ends them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from types import TracebackType

from cicada.errors import CicadaError, ModelError, OutOfTime
from cicada.models.ports import ModelUse, Prompt, Purse, Stopped, Unheld, Usage
from cicada.models.prices import cost
from cicada.models.stopping import Stoppable
from cicada.retrieval.pipelines.api import StageUse
from cicada.text.token_estimates import estimated_tokens

_UNHELD = Unheld()


class OpenUse(Stoppable):
    """One use of a model that is under way: a :class:`cicada.models.ports.Purse`, and an account at any time.

    As a context it hears its own leash's stop, and notes how the use ends. After a stop no further call goes out, and
    one that is under way is given up. Thread-safe: who waits for the use reads its account while the use goes on.
    """

    def __init__(
        self,
        purpose: str,
        model_id: str,
        clock: Callable[[], float],
        *,
        leash: Purse = _UNHELD,
        most: Usage | None = None,
    ) -> None:
        """Begin.

        Args:
            purpose: see :class:`cicada.models.ports.ModelUse`.
            model_id: the service's id of the model.
            clock: monotonic seconds.
            leash: what holds this use in turn.
            most: what each of its calls can take, where that is known beforehand.
        """
        super().__init__()
        self._purpose = purpose
        self._model_id = model_id
        self._clock = clock
        self._leash = leash
        self._most = most
        self._began_s = clock()
        self._lock = threading.Lock()
        self._unhear: Callable[[], None] = lambda: None
        self._calls = 0
        self._usage = Usage(reported=False)
        self._fault: str | None = OutOfTime.code  # of a use that is still under way when it is accounted for
        self._took_s: float | None = None

    def __enter__(self) -> OpenUse:
        self._unhear = self._leash.on_stop(self.stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unhear()
        with self._lock:
            self._took_s = self._clock() - self._began_s
            if error is None:
                self._fault = None
            elif isinstance(error, CicadaError):
                self._fault = error.code
                if isinstance(error, ModelError) and error.usage is not None:
                    self._usage = error.usage

    def call(self) -> None:
        """See the port. Raises Stopped after :meth:`stop`."""
        if self._most is not None:
            self._leash.allow(self._model_id, self._most)
        self._leash.call()
        with self._lock:
            if self.stopped:
                raise Stopped
            self._calls += 1

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port."""
        self._leash.allow(model_id, most)

    def took(self, usage: Usage) -> None:
        """Note what the service reported."""
        with self._lock:
            self._usage = usage

    def account(self) -> ModelUse:
        """What it took so far; ``out_of_time`` is the fault of one that has not ended."""
        with self._lock:
            took_s = self._clock() - self._began_s if self._took_s is None else self._took_s
            took_ms = round(took_s * 1000)
            return ModelUse(self._purpose, self._model_id, self._calls, self._usage, took_ms, self._fault)


def most_of(prompt: Prompt, max_tokens: int) -> Usage:
    """What a call can take, by an estimate of its prompt's tokens and its longest answer."""
    return Usage(estimated_tokens(prompt.system) + estimated_tokens(prompt.user), max_tokens)


def usd_of(use: ModelUse) -> float | None:
    """What a use cost; None where its price is not known, or calls went out whose usage was not reported."""
    if not use.calls:
        return 0.0
    price = cost(use.model_id, use.usage) if use.usage.reported else None
    return None if price is None else price.usd


def stage_uses(uses: Iterable[tuple[str, ModelUse]]) -> tuple[StageUse, ...]:
    """The uses of each stage and model, added up, in the order in which they began."""
    grouped: dict[tuple[str, str], list[ModelUse]] = {}
    for stage, use in uses:
        grouped.setdefault((stage, use.model_id), []).append(use)
    return tuple(_added_up(stage, model_id, made) for (stage, model_id), made in grouped.items())


def _added_up(stage: str, model_id: str, uses: list[ModelUse]) -> StageUse:
    usd = [usd_of(use) for use in uses]
    known = [one for one in usd if one is not None]
    return StageUse(
        stage=stage,
        model_id=model_id,
        calls=sum(use.calls for use in uses),
        input_tokens=sum(use.usage.input_tokens + use.usage.cache_read_tokens for use in uses),
        output_tokens=sum(use.usage.output_tokens for use in uses),
        cost_usd=sum(known) if len(known) == len(usd) else None,
    )
