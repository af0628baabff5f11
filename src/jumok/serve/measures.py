"""What the service tells Prometheus: how many requests, how long, how much is waiting, how large the batches are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from jumok.serve.service import Service

CONTENT = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Measures:
    """A registry of its own, so that two services in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "jumok_requests",
            "Requests, by the code of their answer (499: the client hung up).",
            ["route", "code"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "jumok_request_seconds",
            "From the head of a request to the end of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._sentences = Histogram(
            "jumok_batch_sentences", "Jobs of a batch.", ["model"], buckets=SIZES, registry=self.registry
        )
        self._waited = Histogram(
            "jumok_wait_seconds", "How long jobs waited.", ["model"], buckets=SECONDS, registry=self.registry
        )
        self._computed = Histogram(
            "jumok_batch_seconds", "How long batches took.", ["model"], buckets=SECONDS, registry=self.registry
        )
        # looking up labels costs more than counting: once for each route and code
        self._counted: dict[tuple[str, int], Any] = {}
        self._timed: dict[str, Any] = {}
        self._batched: dict[str, list[Any]] = {}

    def request(self, route: str, code: int, seconds: float) -> None:
        counter = self._counted.get((route, code))
        if counter is None:
            counter = self._counted[route, code] = self._requests.labels(route, str(code))
            self._timed.setdefault(route, self._seconds.labels(route))
        counter.inc()
        self._timed[route].observe(seconds)

    def batch(self, model: str, sentences: int, waited: float, computed: float) -> None:
        if model not in self._batched:
            self._batched[model] = [one.labels(model) for one in (self._sentences, self._waited, self._computed)]
        for measure, value in zip(self._batched[model], (sentences, waited, computed), strict=True):
            measure.observe(value)

    def watch(self, service: Service) -> None:
        self.registry.register(_Now(service))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Now(Collector):
    """What is read at the moment somebody asks."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        service = self.service
        yield GaugeMetricFamily("jumok_ready", "1: the service takes work.", service.phase == "ready")
        yield GaugeMetricFamily("jumok_requests_running", "Requests being answered.", service.running)
        yield GaugeMetricFamily("jumok_bytes_held", "Bytes of requests being read or answered.", service.held)
        waiting = GaugeMetricFamily("jumok_queue_waiting", "Jobs in the queue.", labels=["model"])
        running = GaugeMetricFamily("jumok_queue_running", "Jobs being computed.", labels=["model"])
        served = CounterMetricFamily("jumok_jobs_served", "Jobs that were answered.", labels=["model"])
        cancelled = CounterMetricFamily("jumok_jobs_cancelled", "Jobs whose client hung up.", labels=["model"])
        for one in service.served():
            worker = one.worker
            waiting.add_metric([one.name], worker.waiting)
            running.add_metric([one.name], worker.running)
            served.add_metric([one.name], worker.served)
            cancelled.add_metric([one.name], worker.cancelled)
        yield from (waiting, running, served, cancelled)
