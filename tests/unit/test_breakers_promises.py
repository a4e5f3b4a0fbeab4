"""The promises of circuit breakers under every order of calls, outages and deaths: workers over one store."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cicada.breakers.decide import Breaker, Policy
from cicada.errors import DependencyDown, ModelBusy, ModelUnavailable
from tests.support.breakers import Beside, Clock, InMemoryBreakers, board

NAME = "model:m"
POLICY = Policy(failures=3, window_s=10, first_rest_s=5, longest_rest_s=20, probe_s=15)


class Workers(RuleBasedStateMachine):
    """Three workers call one dependency; their views are as old as it happens."""

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.store = InMemoryBreakers()
        self.beside = [Beside(at_once=False) for _ in range(3)]
        self.boards = [
            board(
                self.store,
                self.clock,
                f"w{n}",
                policy=POLICY,
                concurrency=beside,
                first_read_s=0,
                on_happening=self.heard,
            )
            for n, beside in enumerate(self.beside)
        ]
        self.works = False
        self.running = []
        self.probes = []
        """(admission, when it was claimed) of each probe that has no outcome yet."""
        self.failures = []
        """When each failure was told."""

    def heard(self, name, happening):
        if happening == "opened" and self.stored.openings == 1:
            recent = [at for at in self.failures if at > self.clock.now_s - POLICY.window_s]
            assert len(recent) >= POLICY.failures
        if happening == "closed":
            assert self.works

    @property
    def stored(self):
        return self.store.breakers.get(NAME, Breaker())

    def call(self, worker):
        before = self.stored.probe
        try:
            admission = self.boards[worker].admit(NAME)
        except DependencyDown:
            return None
        if self.stored.probe not in (None, before):
            self.probes.append((admission, self.clock.now_s))
        return admission

    def end(self, admission):
        self.forget(admission)
        if self.works:
            admission.succeeded()
        else:
            self.failures.append(self.clock.now_s)
            admission.failed(ModelBusy("throttled"))

    def forget(self, admission):
        self.running = [other for other in self.running if other is not admission]
        self.probes = [(other, at) for other, at in self.probes if other is not admission]

    @rule(worker=st.integers(0, 2), times=st.integers(1, 3))
    def makes_short_calls(self, worker, times):
        for _ in range(times):
            admission = self.call(worker)
            if admission is not None:
                self.end(admission)

    @rule(worker=st.integers(0, 2))
    def begins_a_call(self, worker):
        admission = self.call(worker)
        if admission is not None:
            self.running.append(admission)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def a_call_ends(self, data):
        self.end(data.draw(st.sampled_from(self.running)))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def a_call_is_given_up(self, data):
        admission = data.draw(st.sampled_from(self.running))
        self.forget(admission)
        admission.released()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def a_worker_dies(self, data):
        admission = data.draw(st.sampled_from(self.running))
        self.running = [other for other in self.running if other is not admission]

    @rule(worker=st.integers(0, 2))
    def a_view_arrives(self, worker):
        self.beside[worker].catch_up()

    @rule(works=st.sampled_from([False, False, True]))
    def the_dependency_changes(self, works):
        self.works = works

    @rule(seconds=st.sampled_from([1.0, 4.0, 6.0, 16.0]))
    def time_passes(self, seconds):
        self.clock.pass_s(seconds)

    @invariant()
    def one_probe_at_a_time(self):
        alive = [at for _, at in self.probes if self.clock.now_s < at + POLICY.probe_s]
        assert len(alive) <= 1

    @invariant()
    def rests_are_bounded(self):
        assert self.stored.retry_at_ms <= (self.clock.now_s + POLICY.longest_rest_s) * 1000

    def teardown(self):
        """Whatever has happened: once the dependency works, the next calls find out, whoever died meanwhile."""
        self.works = True
        self.running, self.probes = [], []
        for second in range(int(POLICY.longest_rest_s + POLICY.probe_s) + 2):
            admission = self.call(second % 3)
            if admission is not None:
                admission.succeeded()
            self.clock.pass_s(1)
        assert self.stored.stage(int(self.clock.now_s * 1000)) == "closed"
        for worker in range(3):
            assert self.call(worker) is not None


TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=60, stateful_step_count=50)


def test_a_breaker_of_an_outage_opens_and_each_probe_doubles_the_rest():
    """The whole life of a breaker, as one story."""
    clock, store = Clock(), InMemoryBreakers()
    breakers = board(store, clock)
    for _ in range(5):
        breakers.admit(NAME).failed(ModelUnavailable("down"))
    rests = []
    for _ in range(7):
        rests.append(store.breakers[NAME].retry_at_ms / 1000 - clock.now_s)
        clock.pass_s(rests[-1])
        breakers.admit(NAME).failed(ModelUnavailable("still down"))
    assert rests == [5, 10, 20, 40, 80, 120, 120]
    clock.pass_s(120)
    breakers.admit(NAME).succeeded()
    assert store.breakers[NAME] == Breaker(revision=store.breakers[NAME].revision)
