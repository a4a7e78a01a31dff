"""Wiring of the admitter, and the only place where its parts meet."""

import asyncio
import time
from collections.abc import Callable

import msgspec

from fairlead_admitter.apply.frontend_backoff import FrontendBackoff
from fairlead_admitter.apply.level_applier import DryRunApplier, LevelApplier
from fairlead_admitter.apply.lever_probe import LeverProber, LeverWatch
from fairlead_admitter.apply.release import PoolRelease
from fairlead_admitter.decide.planner import Planner
from fairlead_admitter.decide.reserving import Reservations
from fairlead_admitter.decide.turn_clock import TurnClock
from fairlead_admitter.frontends.opening import Frontend, open_frontend
from fairlead_admitter.intake.admission import SubmissionCheck
from fairlead_admitter.intake.answers import JobEventHandler
from fairlead_admitter.intake.backlog import IntakeBacklog
from fairlead_admitter.intake.cancelling import Canceller
from fairlead_admitter.intake.creation import RetryingCreator
from fairlead_admitter.intake.leader_consumers import DurableConsumer, LeaderConsumers, share_of_a_tenant
from fairlead_admitter.intake.limits import IntakeLimits, TenantLimits
from fairlead_admitter.intake.submission_handler import SubmissionHandler
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.watch import ADMITTER, Watch
from fairlead_admitter.reconciler import PlanApplier, Reconciler
from fairlead_admitter.report.adherence import AdherenceRecord, AdherenceWatch
from fairlead_admitter.report.event_log import EventLog, JobEvents
from fairlead_admitter.report.event_recorder import EventRecorder, EventSink
from fairlead_admitter.report.job_traces import JobTraces
from fairlead_admitter.report.queue_metrics import QueueMetrics
from fairlead_admitter.report.record import AdmitterRecord
from fairlead_admitter.report.replies import ReplyPublisher
from fairlead_admitter.report.reservation_record import ReservationRecord
from fairlead_admitter.report.staleness import Staleness
from fairlead_admitter.settings import AdmitterSettings
from fairlead_bus import Bucket, Bus, ConnectionSettings, connect
from fairlead_bus.ownership.leadership import Leadership
from fairlead_bus.server.provision import require_durables
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.events import JobEvicted
from fairlead_contracts.messages.members import LeaderLease
from fairlead_policy.exact.ranking import warm_up
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.cpu_wait import CpuWait
from fairlead_runtime.lifecycle import Lifecycle

_DRY_RUN_EPOCH = 0
"""The epoch of a dry run: it decides as if it led, beside whoever does, takes no lease and writes nothing."""
_ANSWERS_IN_PROGRESS = 64


async def main(settings: AdmitterSettings, lifecycle: Lifecycle) -> None:
    """Serve one cluster until the process is asked to stop."""
    warm_up()
    wake = asyncio.Event()
    async with connect(ConnectionSettings.of(settings), name=ADMITTER, observer=lifecycle.observer) as bus:
        watch = Watch(bus, settings.cluster, wake)
        lead = Lead()
        async with open_frontend(
            settings,
            bus,
            watch,
            lifecycle.observer,
            epoch=lambda: lead.epoch,
            overtaken=lead.overtaken,
        ) as frontend:
            admitter = Admitter(
                settings, lifecycle, bus, watch=watch, frontend=frontend, lead=lead, wake=wake
            )
            await (admitter.dry_run() if settings.dry_run else admitter.serve())


class Lead:
    """The leadership of this process, for parts that are made before it."""

    def __init__(self) -> None:
        self.leadership: Leadership | None = None

    @property
    def epoch(self) -> int | None:
        """The epoch of our lead; None while we do not lead or may not trust it."""
        return None if self.leadership is None else self.leadership.epoch

    def overtaken(self, epoch: int) -> None:
        """See `Leadership.overtaken`."""
        if self.leadership is not None:
            self.leadership.overtaken(epoch)


class Admitter:
    """The parts of one admitter, wired."""

    def __init__(
        self,
        settings: AdmitterSettings,
        lifecycle: Lifecycle,
        bus: Bus,
        *,
        watch: Watch,
        frontend: Frontend,
        lead: Lead,
        wake: asyncio.Event,
    ) -> None:
        self._settings = settings
        self._lead = lead
        self._lifecycle = lifecycle
        self._bus = bus
        self._watch = watch
        self._frontend = frontend
        self._wake = wake
        self._traces = JobTraces(lifecycle.spans, settings.cluster)
        self._record = AdmitterRecord(lifecycle.metrics, settings.cluster, self._traces)
        self._staleness = Staleness(lifecycle.metrics, settings.cluster, settings.stale_after_seconds)
        self._expectations = Expectations()
        lifecycle.metrics.registry.register(QueueMetrics(watch.facts, watch.policy))
        self._clock = TurnClock()
        self._reservations = ReservationRecord(lifecycle.metrics, settings.cluster)
        self._frontend_backoff = FrontendBackoff(time.monotonic, settings.stale_after_seconds)
        self._release = PoolRelease(
            frontend.sweep, self._record, FrontendBackoff(time.monotonic, settings.stale_after_seconds)
        )
        self._creator = RetryingCreator(
            frontend.jobs,
            share=share_of_a_tenant(settings.submissions_in_progress),
            troubled=self._record.creation_failed,
        )
        self._intake_watch = IntakeBacklog(
            bus, settings.cluster, metrics=lifecycle.metrics, stale_after=settings.stale_after_seconds
        )
        self._replies = ReplyPublisher(bus, settings.cluster, self._record.answered)
        self._log = EventLog(bus, self._record)
        self._planner = self._make_planner()
        self._adherence = AdherenceWatch(
            watch, AdherenceRecord(lifecycle.metrics), merge=self._planner.merged, clock=wall_clock
        )

    async def serve(self) -> None:
        """Stand for the lead; while leading, write levels, take submissions in and answer."""
        await self._require_durables()
        led = asyncio.Event()

        def lead() -> int | None:
            return self._lead.epoch if self._bus.connected else None

        lever = None if self._frontend.lever is None else self._lever_watch(self._frontend.lever, lead)
        leadership = self._lead.leadership = self._leadership(led, lever)
        applier = LevelApplier(
            self._frontend.levels,
            self._expectations,
            self._watch.facts.job,
            queues=lambda: self._watch.facts.queues,
            in_flight=self._settings.writes_in_flight,
            at_once=self._settings.writes_per_pass,
            longest=self._settings.pass_seconds,
        )
        # The consumers outlive a short loss of the connection: their worker knows how to, and trust ends by itself.
        intake = self._intake_consumer()
        consumers = LeaderConsumers(
            [intake, self._answer_consumer()],
            begin=self._begin_anew,
            lead=lambda: leadership.epoch,
            led=led,
            wake=self._wake,
        )
        self._add_readiness(lead)
        self._lifecycle.readiness.add("lease", leadership.trouble)
        self._add_intake_readiness(intake)
        async with self._lifecycle.supervise() as tasks:
            tasks.start("connection", self._bus.wait_closed())
            tasks.start("watch", self._watch.run())
            tasks.start("event log", self._log.run())
            tasks.start("leadership", leadership.run())
            tasks.start("reconcile", self._reconciler(applier, lead).run())
            tasks.start("release", self._release.run())
            tasks.start("consumers", consumers.run())
            tasks.start("intake watch", self._intake_watch.run(intake, lambda: lead() is not None))
            if self._frontend.objections is not None:
                tasks.start("objections", self._recorder(self._frontend.objections, lead).run())
            if lever is not None:
                tasks.start("lever", lever.run())
            for name, run in self._frontend.background.items():
                tasks.start(name, run())

    async def dry_run(self) -> None:
        """Decide as if leading, and say what would be written."""

        def lead() -> int | None:
            return _DRY_RUN_EPOCH if self._bus.connected else None

        applier = DryRunApplier(self._record.would_write)
        self._add_readiness(lead)
        self._lifecycle.readiness.tell("role", lambda: "dry run")
        async with self._lifecycle.supervise() as tasks:
            tasks.start("connection", self._bus.wait_closed())
            tasks.start("watch", self._watch.run())
            tasks.start("event log", self._log.run())
            tasks.start("reconcile", self._reconciler(applier, lead).run())

    def _make_planner(self) -> Planner:
        return Planner(
            self._watch,
            self._expectations,
            clock=self._clock,
            cpu_wait=CpuWait().part,
            reserving=Reservations(
                self._reservations,
                self._watch.facts.job,
                writable=lambda: not self._frontend_backoff.seconds_left,
            ),
            tick=self._settings.tick_seconds,
            dry_run=self._settings.dry_run,
        )

    def _reconciler(self, applier: PlanApplier, lead: Callable[[], int | None]) -> Reconciler:
        return Reconciler(
            self._watch,
            self._planner,
            self._adherence,
            applier,
            self._expectations,
            events=JobEvents(self._log, self._watch.policy, self._traces),
            reservations=self._reservations,
            record=self._record,
            traces=self._traces,
            staleness=self._staleness,
            release=self._release,
            clock=self._clock,
            frontend_backoff=self._frontend_backoff,
            lead=lead,
            wake=self._wake,
            tick=self._settings.tick_seconds,
        )

    def _recorder(self, sink: EventSink, lead: Callable[[], int | None]) -> EventRecorder:
        watch = self._watch
        return EventRecorder(
            sink,
            watch.facts,
            rulebook=lambda: watch.policy.rulebook if watch.intake_known() else None,
            leads=lambda: lead() is not None,
            foreign=lambda: self._expectations.foreign.found,
            steered=self._steered_queues,
            metrics=self._lifecycle.metrics,
        )

    def _steered_queues(self) -> set[str]:
        """The queues to which levels are written: by leave, and in pools from which nothing withholds them."""
        if not self._watch.policy.words.leave(self._settings.cluster):
            return set()
        withheld = self._record.withheld_levels
        return {
            queue
            for pool, queues in self._watch.pools().items()
            if not withheld.withholds(pool)
            for queue in queues
        }

    def _lever_watch(self, probing: LeverProber, lead: Callable[[], int | None]) -> LeverWatch:
        cluster, words = self._settings.cluster, self._watch.policy.words
        bucket = Bucket(self._bus, topology.POLICY)
        watch = LeverWatch(
            probing,
            leave=lambda: words.leave(cluster),
            found=lambda: words.lever_found(cluster),
            state=lambda found: bucket.put(subjects.lever_key(cluster), to_json(found)),
            lead=lambda: lead() if self._watch.unknown() is None else None,
            metrics=self._lifecycle.metrics,
            every=self._settings.lever_probe_seconds,
        )
        self._lifecycle.readiness.tell("lever", watch.told)
        return watch

    def _begin_anew(self) -> None:
        self._replies.begin_anew()
        self._creator.begin_anew()

    async def _require_durables(self) -> None:
        """Ends the process where a durable is missing: a standby would find out only once it leads."""
        cluster = self._settings.cluster
        submits = topology.SUBMIT, topology.submit_durable(cluster)
        await require_durables(self._bus, submits, (topology.EVENT, topology.answers_durable(cluster)))

    def _intake_consumer(self) -> DurableConsumer:
        cluster = self._settings.cluster
        facts = self._watch.facts
        admission = SubmissionCheck(facts, self._watch.policy)
        intake = SubmissionHandler(
            cluster,
            admission,
            self._limits(),
            self._creator,
            self._replies,
            canceller=Canceller(self._bus, facts, admission, self._creator, self._replies),
            known=self._watch.wait_known,
            taken=self._record.taken,
            traces=self._traces,
        )
        return DurableConsumer(
            self._bus,
            stream=topology.SUBMIT,
            durable=topology.submit_durable(cluster),
            handle=intake.handle,
            parallel=self._settings.submissions_in_progress,
            overtaking=subjects.submit_filter(cluster),
        )

    def _limits(self) -> IntakeLimits:
        settings = self._settings
        limits = TenantLimits(
            a_second=settings.tenant_submits_per_second,
            burst=settings.tenant_submits_burst,
            waiting=settings.tenant_waiting_jobs,
        )
        return IntakeLimits(
            settings.cluster, limits, waiting=self._watch.facts.waiting, full=self._intake_watch.full
        )

    def _leadership(self, wake: asyncio.Event, lever: LeverWatch | None) -> Leadership:
        def described(lease: LeaderLease) -> LeaderLease:
            return msgspec.structs.replace(
                lease,
                reserved=self._reservations.stated(),
                followed=self._adherence.stated(),
                preemptions_by_left_levels=self._record.withheld_levels.by_left_levels(),
                untaken=self._intake_watch.untaken,
                late_by=self._planner.pace.late_by(),
                outpaced=self._planner.outpaced(),
                out_of_turn=self._adherence.out_of_turn(time.monotonic()),
                left_alone=self._record.left_alone.stated(),
                contested=self._record.left_alone.contested,
                stale=self._staleness.by_pool(),
                rival=self._expectations.has_rival(time.monotonic()),
                silent="" if lever is None else lever.why_silent() or "",
            )

        return Leadership(
            self._bus,
            role=ADMITTER,
            cluster=self._settings.cluster,
            replica=self._lifecycle.replica,
            wake=wake,
            describe=described,
        )

    def _answer_consumer(self) -> DurableConsumer:
        facts, policy = self._watch.facts, self._watch.policy
        answers = JobEventHandler(self._replies, facts, policy, evicted=self._note_eviction)
        return DurableConsumer(
            self._bus,
            stream=topology.EVENT,
            durable=topology.answers_durable(self._settings.cluster),
            handle=answers.handle,
            parallel=_ANSWERS_IN_PROGRESS,
            concerns=answers.concerns,
        )

    def _note_eviction(self, event: JobEvicted) -> None:
        """Counts preemptions: whoever lets levels be written where the frontend preempts wants to know."""
        job = self._watch.facts.job(event.uid)
        queue = None if job is None else self._watch.facts.queues.get(job.queue)
        pool = None if queue is None else self._watch.pool_of(queue.name)
        if pool is not None and queue is not None and event.reason == queue.able.preempted:
            self._record.withheld_levels.preempted(pool, event.at)

    def _add_readiness(self, lead: Callable[[], int | None]) -> None:
        """Answers /readyz. A standby is ready too: it knows everything, and waits."""
        readiness = self._lifecycle.readiness
        readiness.add("connection", lambda: None if self._bus.connected else "not connected to NATS")
        readiness.add("knowledge", lambda: self._watch.unknown() or self._watch.why_no_policy())
        readiness.add("decisions", lambda: self._staleness.stale() if lead() is not None else None)
        readiness.add("levels", self._frontend_backoff.trouble)
        readiness.add("answers", lambda: self._replies.trouble)
        readiness.tell("role", lambda: "standby" if lead() is None else "leader")
        readiness.tell("resting", self._expectations.backoff.told)
        readiness.tell("withheld", self._record.withheld_levels.told)
        readiness.tell("reserve", self._reservations.told)

    def _add_intake_readiness(self, intake: DurableConsumer) -> None:
        """Adds intake to /readyz. A frontend that answers nobody is a reason not to be ready; one tenant's trouble is told."""

        def down() -> str | None:
            held = intake.parked
            return (
                f"the frontend does not answer; {held} submissions wait for it"
                if held and self._creator.down
                else None
            )

        self._lifecycle.readiness.add("frontend", down)
        self._lifecycle.readiness.add("intake", self._intake_watch.stuck)
        self._lifecycle.readiness.tell("intake", self._creator.told)
        self._lifecycle.readiness.tell("nats", lambda: self._intake_watch.fullest)
