package telemetry

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Outcomes of one attempt to run a node.
const (
	OutcomeDone        = "done"
	OutcomeFailed      = "failed"
	OutcomeRetried     = "retried"
	OutcomeInterrupted = "interrupted"
	OutcomeCancelled   = "cancelled"
)

// Outcomes of a commit, as values of the label of graphd_commit_seconds.
const (
	commitOK          = "ok"
	commitConflict    = "conflict"
	commitUnavailable = "unavailable"
	commitFailed      = "error"
)

// Metrics counts and times the work of the engine, in a registry of its own. Labels
// are names that a graph declares, never the id of a thread or a run. Beyond a
// limit, further names are "other". It is safe for concurrent use.
type Metrics struct {
	registry   *prometheus.Registry
	labelLimit int // values of each label

	graphs  *labelValues[string]
	nodes   *labelValues[[2]string] // of a graph
	reasons *labelValues[string]

	runsStarted        *prometheus.CounterVec
	runsActive         *prometheus.GaugeVec
	runSeconds         *prometheus.HistogramVec
	nodeSeconds        *prometheus.HistogramVec
	commitSeconds      *prometheus.HistogramVec
	interruptsRaised   *prometheus.CounterVec
	interruptsResolved *prometheus.CounterVec
	interruptWait      *prometheus.HistogramVec
	followers          prometheus.Gauge
	slowFollowers      prometheus.Counter
	poisonedThreads    prometheus.Gauge
	liveBytes          prometheus.Gauge
	runsEvicted        *prometheus.CounterVec
	storeRefusals      *prometheus.GaugeVec
	callsRefused       *prometheus.CounterVec
	handshakesRefused  *prometheus.CounterVec
	auditRecords       *prometheus.CounterVec
	auditLost          *prometheus.CounterVec
	quotasExceeded     *prometheus.CounterVec
	webhooks           webhookMetrics
	cronFirings        *prometheus.CounterVec
	linkPages          *prometheus.CounterVec
	spans              *prometheus.CounterVec
}

// DefaultLabelValues is the number of graphs, nodes and reasons that have series of
// their own.
const DefaultLabelValues = 256

// NewMetrics makes the metrics of one process. version is that of the build,
// limit bounds the values of each label; 0 = DefaultLabelValues.
func NewMetrics(version string, limit int) *Metrics {
	if limit <= 0 {
		limit = DefaultLabelValues
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(), labelLimit: limit,
		graphs: newLabelValues[string](limit), nodes: newLabelValues[[2]string](limit), reasons: newLabelValues[string](limit),
		runsStarted: newCounter("graphd_runs_started_total",
			"Runs that were admitted.", "graph"),
		runsActive: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "graphd_runs_active",
			Help: "Runs this process drives now. A run that waits for a person is not one.",
		}, []string{"graph"}),
		runSeconds: newHistogram("graphd_run_seconds",
			"Time that a run was driven until it stopped, by the state it stopped in.",
			prometheus.ExponentialBuckets(0.001, 4, 12), "graph", "state"),
		nodeSeconds: newHistogram("graphd_node_attempt_seconds",
			"Time of one attempt to run a node, by outcome.",
			prometheus.ExponentialBuckets(0.0001, 4, 12), "graph", "node", "outcome"),
		commitSeconds: newHistogram("graphd_commit_seconds",
			"Time until the store acknowledged a change, by result.",
			prometheus.ExponentialBuckets(0.00005, 4, 10), "result"),
		interruptsRaised: newCounter("graphd_interrupts_raised_total",
			"Questions put to people.", "graph", "reason"),
		interruptsResolved: newCounter("graphd_interrupts_resolved_total",
			"Questions that left the open state, by the state they went to.", "graph", "state"),
		followers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "graphd_followers",
			Help: "Open event streams.",
		}),
		slowFollowers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "graphd_followers_slow_total",
			Help: "Event streams ended because their reader did not keep up.",
		}),
	}
	m.interruptWait = newHistogram("graphd_interrupt_wait_seconds",
		"Time from a question until the wait for its answer ended, by how it ended.",
		prometheus.ExponentialBuckets(1, 3, 13), "graph", "outcome")
	m.poisonedThreads = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "graphd_threads_poisoned",
		Help: "Threads this server has put off because it fails whenever it takes them up.",
	})
	m.liveBytes = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "graphd_live_bytes",
		Help: "Bytes that the runs this process drives hold in their states, and in what their tasks have written.",
	})
	m.runsEvicted = newCounter("graphd_runs_put_off_total",
		"Runs that were put off between two supersteps, because those that this process drives held too much.", "graph")
	m.storeRefusals = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "graphd_store_refuses_changes",
		Help: "1 while the store takes no changes for a reason, until an operator acts.",
	}, []string{"reason"})
	m.callsRefused = newCounter("graphd_calls_refused_total",
		"Calls that ended with an error, by its reason.", "reason")
	m.handshakesRefused = newCounter("graphd_tls_handshakes_failed_total",
		"Connections of clients that ended before their first call, because their TLS handshake failed.", "reason")
	m.auditRecords = newCounter("graphd_audit_records_total",
		"Calls that were written to a sink of the audit, by how they ended.", "sink", "outcome")
	m.auditLost = newCounter("graphd_audit_lost_total",
		"Records of the audit that a sink has not got. A record of the gap tells how many.", "sink")
	m.quotasExceeded = newCounter("graphd_quota_refusals_total",
		"Calls that a quota refused, by the limit and by whose it is, a tenant's or a caller's.", "limit", "of")
	m.webhooks = newWebhookMetrics()
	m.cronFirings = newCounter("graphd_cron_firings_total",
		"Firings of crons, by the graph of the run and by what became of it: started or refused.", "graph", "outcome")
	m.linkPages = newCounter("graphd_link_pages_total",
		"Pages of links by what became of the request: shown, answered, undone, invalid, or why it was refused.", "outcome")
	m.spans = newCounter("graphd_spans_total",
		"Spans of traces by what became of them: sent, dropped as the queue was full, or failed at the collector.", "outcome")
	m.runsActive.WithLabelValues(otherValue)
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "graphd_build_info", Help: "Constant 1, labelled with the version.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.runsStarted, m.runsActive, m.runSeconds, m.nodeSeconds, m.commitSeconds,
		m.interruptsRaised, m.interruptsResolved, m.interruptWait, m.followers, m.slowFollowers, m.poisonedThreads, m.liveBytes, m.runsEvicted, m.storeRefusals, m.callsRefused,
		m.handshakesRefused, m.auditRecords, m.auditLost, m.quotasExceeded, m.webhooks.events, m.webhooks.dead, m.cronFirings, m.linkPages, m.spans, build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
	}, labels)
}

// Registry returns the registry, for further collectors such as those of the gRPC
// server.
func (m *Metrics) Registry() prometheus.Registerer { return m.registry }

// Handler returns a handler that serves the metrics in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// RunStarted counts a run that was admitted.
func (m *Metrics) RunStarted(graph string) {
	m.runsStarted.WithLabelValues(valueOrOther(m.graphs, graph)).Inc()
}

// RunDriven counts a run among the active runs; a resumed run is driven again.
func (m *Metrics) RunDriven(graph string) {
	m.runsActive.WithLabelValues(valueOrOther(m.graphs, graph)).Inc()
}

// RunEnded records that this process no longer drives a run. state is the state of
// the run, "interrupted" when it waits for a person, or "lost" when it continues at
// another server. took is the time that this process drove the run.
func (m *Metrics) RunEnded(graph, state string, took time.Duration) {
	graph = valueOrOther(m.graphs, graph)
	m.runsActive.WithLabelValues(graph).Dec()
	m.runSeconds.WithLabelValues(graph, state).Observe(took.Seconds())
}

// NodeEnded times one attempt of a node; outcome is one of the Outcome
// constants.
func (m *Metrics) NodeEnded(graph, node, outcome string, took time.Duration) {
	graph = valueOrOther(m.graphs, graph)
	if !m.nodes.admitValue([2]string{graph, node}) {
		graph, node = otherValue, otherValue
	}
	m.nodeSeconds.WithLabelValues(graph, node, outcome).Observe(took.Seconds())
}

// CommitEnded times one change of a thread; err is the error of the store.
func (m *Metrics) CommitEnded(took time.Duration, err error) {
	m.commitSeconds.WithLabelValues(commitResult(err)).Observe(took.Seconds())
}

func commitResult(err error) string {
	switch {
	case err == nil:
		return commitOK
	case errors.Is(err, checkpoint.ErrConflict):
		return commitConflict
	case errors.Is(err, checkpoint.ErrUnavailable):
		return commitUnavailable
	}
	return commitFailed
}

// InterruptRaised counts an interrupt. An interrupt without a reason counts under
// the reason "".
func (m *Metrics) InterruptRaised(graph, reason string) {
	m.interruptsRaised.WithLabelValues(valueOrOther(m.graphs, graph), valueOrOther(m.reasons, reason)).Inc()
}

// InterruptResolved counts an interrupt that was answered, dismissed, expired or
// superseded; state is its new state.
func (m *Metrics) InterruptResolved(graph, state string) {
	m.interruptsResolved.WithLabelValues(valueOrOther(m.graphs, graph), state).Inc()
}

// InterruptEnded times the wait for an answer; outcome is a checkpoint.Outcome.
func (m *Metrics) InterruptEnded(graph, outcome string, wait time.Duration) {
	m.interruptWait.WithLabelValues(valueOrOther(m.graphs, graph), outcome).Observe(wait.Seconds())
}

// ThreadsPoisoned sets the number of quarantined threads, those that servers fail
// to drive.
func (m *Metrics) ThreadsPoisoned(n int) { m.poisonedThreads.Set(float64(n)) }

// LiveBytes sets the bytes that the live runs hold.
func (m *Metrics) LiveBytes(n int64) { m.liveBytes.Set(float64(n)) }

// RunEvicted counts a run that was evicted and waits for memory.
func (m *Metrics) RunEvicted(graph string) {
	m.runsEvicted.WithLabelValues(valueOrOther(m.graphs, graph)).Inc()
}

// CronFired counts a firing of a cron.
func (m *Metrics) CronFired(graph, outcome string) {
	m.cronFirings.WithLabelValues(valueOrOther(m.graphs, graph), outcome).Inc()
}

// SetStoreRefusal sets whether the store takes no changes for a reason.
func (m *Metrics) SetStoreRefusal(reason string, refuses bool) {
	value := 0.0
	if refuses {
		value = 1
	}
	m.storeRefusals.WithLabelValues(reason).Set(value)
}

// CountRefusedCall counts a call that ended with an error. The reasons are those of
// the protocol; clients can't choose others.
func (m *Metrics) CountRefusedCall(reason string) { m.callsRefused.WithLabelValues(reason).Inc() }

// CountRefusedHandshake counts a connection whose TLS handshake failed.
func (m *Metrics) CountRefusedHandshake(reason string) {
	m.handshakesRefused.WithLabelValues(reason).Inc()
}

// CountAuditRecord counts a call that was written to a sink of the audit.
func (m *Metrics) CountAuditRecord(name string, outcome audit.Outcome) {
	m.auditRecords.WithLabelValues(name, string(outcome)).Inc()
}

// CountLostAuditRecords counts records that a sink of the audit has not got.
func (m *Metrics) CountLostAuditRecords(name string, n int) {
	m.auditLost.WithLabelValues(name).Add(float64(n))
}

// CountExceededQuota counts a call that a quota refused. The names are those of the
// limits; clients can't choose others.
func (m *Metrics) CountExceededQuota(limit, of string) {
	m.quotasExceeded.WithLabelValues(limit, of).Inc()
}

// CountSpans counts spans of traces by what has become of them.
func (m *Metrics) CountSpans(outcome string, n int) { m.spans.WithLabelValues(outcome).Add(float64(n)) }

// Tasks counts the tasks that a server hands to its workers.
type Tasks interface {
	// WaitingTasks returns the number of tasks that wait: because no connected
	// worker serves them, and because those that do have no free slot.
	WaitingTasks() (unserved, busy int)
	// WorkerLosses returns the number of losses of a worker that had a task.
	WorkerLosses() uint64
	// KeptValues returns the bytes of values that were not sent because workers keep
	// them, and the number of tasks that were sent again because workers lacked values.
	KeptValues() (omittedBytes, resentTasks uint64)
}

// WatchTasks adds the numbers of tasks to each page of metrics. It is called once.
func (m *Metrics) WatchTasks(tasks Tasks) {
	waiting := func(reason string, count func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "graphd_tasks_waiting",
			Help:        "Tasks that wait for a worker of this server, by why: none that is connected serves them, or those that do are busy.",
			ConstLabels: prometheus.Labels{"reason": reason},
		}, func() float64 { return float64(count()) })
	}
	m.registry.MustRegister(
		waiting("no_worker", func() int { unserved, _ := tasks.WaitingTasks(); return unserved }),
		waiting("busy", func() int { _, busy := tasks.WaitingTasks(); return busy }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "graphd_deliveries_lost_total",
			Help: "Tasks taken from a worker that was silent for longer than its lease, and calls of endpoints that were lost; what they did may be done again.",
		}, func() float64 { return float64(tasks.WorkerLosses()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "graphd_values_omitted_bytes_total",
			Help: "Bytes of values that tasks were sent without, because their workers keep them.",
		}, func() float64 { omitted, _ := tasks.KeptValues(); return float64(omitted) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "graphd_tasks_resent_total",
			Help: "Tasks that were sent again with all values, because their workers lacked values that they should have kept.",
		}, func() float64 { _, resent := tasks.KeptValues(); return float64(resent) }),
	)
}

// FollowerOpened counts an event stream that opened.
func (m *Metrics) FollowerOpened() { m.followers.Inc() }

// FollowerClosed counts an event stream that closed; slow means that it was ended
// because its reader did not keep up.
func (m *Metrics) FollowerClosed(slow bool) {
	m.followers.Dec()
	if slow {
		m.slowFollowers.Inc()
	}
}
