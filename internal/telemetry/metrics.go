package telemetry

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

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

// Outcomes of a commit, as the label of graphd_commit_seconds has them.
const (
	commitOK          = "ok"
	commitConflict    = "conflict"
	commitUnavailable = "unavailable"
	commitFailed      = "error"
)

// Metrics counts and times what the engine does, in a registry of its own.
// Labels are names that a graph declares, never the id of a thread or a run;
// beyond the first ones, which have a limit, they are "other".
// It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	graphs   *names[string]
	nodes    *names[[2]string] // of a graph
	reasons  *names[string]

	runsStarted *prometheus.CounterVec
	runsActive  *prometheus.GaugeVec
	runSeconds  *prometheus.HistogramVec
	nodeSeconds *prometheus.HistogramVec
	commit      *prometheus.HistogramVec
	raised      *prometheus.CounterVec
	resolved    *prometheus.CounterVec
	followers   prometheus.Gauge
	slow        prometheus.Counter
	poisoned    prometheus.Gauge
	liveBytes   prometheus.Gauge
	putOff      *prometheus.CounterVec
	store       *prometheus.GaugeVec
	refused     *prometheus.CounterVec
}

// DefaultNames is how many graphs, nodes and reasons have series of their own.
const DefaultNames = 256

// NewMetrics makes the metrics of one process. version is that of the build,
// limit bounds the values of each label; 0 = DefaultNames.
func NewMetrics(version string, limit int) *Metrics {
	if limit <= 0 {
		limit = DefaultNames
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		graphs:   newNames[string](limit), nodes: newNames[[2]string](limit), reasons: newNames[string](limit),
		runsStarted: counter("graphd_runs_started_total",
			"Runs that were admitted.", "graph"),
		runsActive: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "graphd_runs_active",
			Help: "Runs this process drives now. A run that waits for a person is not one.",
		}, []string{"graph"}),
		runSeconds: histogram("graphd_run_seconds",
			"Time that a run was driven until it stopped, by the state it stopped in.",
			prometheus.ExponentialBuckets(0.001, 4, 12), "graph", "state"),
		nodeSeconds: histogram("graphd_node_attempt_seconds",
			"Time of one attempt to run a node, by outcome.",
			prometheus.ExponentialBuckets(0.0001, 4, 12), "graph", "node", "outcome"),
		commit: histogram("graphd_commit_seconds",
			"Time until the store acknowledged a change, by result.",
			prometheus.ExponentialBuckets(0.00005, 4, 10), "result"),
		raised: counter("graphd_interrupts_raised_total",
			"Questions put to people.", "graph", "reason"),
		resolved: counter("graphd_interrupts_resolved_total",
			"Questions that left the open state, by the state they went to.", "graph", "state"),
		followers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "graphd_followers",
			Help: "Open event streams.",
		}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "graphd_followers_slow_total",
			Help: "Event streams ended because their reader did not keep up.",
		}),
	}
	m.poisoned = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "graphd_threads_poisoned",
		Help: "Threads this server has put off because it fails whenever it takes them up.",
	})
	m.liveBytes = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "graphd_live_bytes",
		Help: "Bytes that the runs this process drives hold in their states, and in what their tasks have written.",
	})
	m.putOff = counter("graphd_runs_put_off_total",
		"Runs that were put off between two supersteps, because those that this process drives held too much.", "graph")
	m.store = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "graphd_store_refuses_changes",
		Help: "1 while the store takes no changes for a reason, until an operator acts.",
	}, []string{"reason"})
	m.refused = counter("graphd_calls_refused_total",
		"Calls that ended with an error, by its reason.", "reason")
	m.runsActive.WithLabelValues(otherName)
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "graphd_build_info", Help: "Constant 1, labelled with the version.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.runsStarted, m.runsActive, m.runSeconds, m.nodeSeconds, m.commit,
		m.raised, m.resolved, m.followers, m.slow, m.poisoned, m.liveBytes, m.putOff, m.store, m.refused, build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
	}, labels)
}

// Registry takes further collectors, such as those of the gRPC server.
func (m *Metrics) Registry() prometheus.Registerer { return m.registry }

// Handler serves the metrics in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// RunStarted counts a run that was admitted.
func (m *Metrics) RunStarted(graph string) {
	m.runsStarted.WithLabelValues(label(m.graphs, graph)).Inc()
}

// RunDriven counts a run among the active ones; a resumed run is driven again.
func (m *Metrics) RunDriven(graph string) { m.runsActive.WithLabelValues(label(m.graphs, graph)).Inc() }

// RunEnded ends what RunDriven began. state is the run's state now, which is
// "interrupted" when it waits for a person; took is the time it was driven.
func (m *Metrics) RunEnded(graph, state string, took time.Duration) {
	graph = label(m.graphs, graph)
	m.runsActive.WithLabelValues(graph).Dec()
	m.runSeconds.WithLabelValues(graph, state).Observe(took.Seconds())
}

// NodeEnded times one attempt of a node; outcome is one of the Outcome
// constants.
func (m *Metrics) NodeEnded(graph, node, outcome string, took time.Duration) {
	graph = label(m.graphs, graph)
	if !m.nodes.has([2]string{graph, node}) {
		graph, node = otherName, otherName
	}
	m.nodeSeconds.WithLabelValues(graph, node, outcome).Observe(took.Seconds())
}

// CommitEnded times one change of a thread; err is what the store said.
func (m *Metrics) CommitEnded(took time.Duration, err error) {
	m.commit.WithLabelValues(commitResult(err)).Observe(took.Seconds())
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

// InterruptRaised counts a question. A question without a reason counts under
// the reason "".
func (m *Metrics) InterruptRaised(graph, reason string) {
	m.raised.WithLabelValues(label(m.graphs, graph), label(m.reasons, reason)).Inc()
}

// InterruptResolved counts a question that was answered, dismissed, expired or
// superseded; state is the one it went to.
func (m *Metrics) InterruptResolved(graph, state string) {
	m.resolved.WithLabelValues(label(m.graphs, graph), state).Inc()
}

// ThreadsPoisoned says how many threads are put off now because taking them up
// fails.
func (m *Metrics) ThreadsPoisoned(n int) { m.poisoned.Set(float64(n)) }

// LiveBytes says how much the live runs hold.
func (m *Metrics) LiveBytes(n int64) { m.liveBytes.Set(float64(n)) }

// RunPutOff counts a run that waits for room.
func (m *Metrics) RunPutOff(graph string) { m.putOff.WithLabelValues(label(m.graphs, graph)).Inc() }

// StoreRefuses says whether the store takes no changes for a reason.
func (m *Metrics) StoreRefuses(reason string, refuses bool) {
	value := 0.0
	if refuses {
		value = 1
	}
	m.store.WithLabelValues(reason).Set(value)
}

// CallRefused counts a call that ended with an error. The reasons are those of
// the protocol, which no client chooses.
func (m *Metrics) CallRefused(reason string) { m.refused.WithLabelValues(reason).Inc() }

// Tasks are those that a server hands to its workers.
type Tasks interface {
	// Waiting is how many wait: because no connected worker serves them, and
	// because those that do have no room.
	Waiting() (unserved, busy int)
	// Lost is how often a worker that had a task was lost.
	Lost() uint64
}

// WatchTasks has each page say how tasks do. It is called once.
func (m *Metrics) WatchTasks(tasks Tasks) {
	waiting := func(reason string, count func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "graphd_tasks_waiting",
			Help:        "Tasks that wait for a worker of this server, by why: none that is connected serves them, or those that do are busy.",
			ConstLabels: prometheus.Labels{"reason": reason},
		}, func() float64 { return float64(count()) })
	}
	m.registry.MustRegister(
		waiting("no_worker", func() int { unserved, _ := tasks.Waiting(); return unserved }),
		waiting("busy", func() int { _, busy := tasks.Waiting(); return busy }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "graphd_deliveries_lost_total",
			Help: "Tasks taken from a worker that was silent for longer than its lease, and calls of endpoints that were lost; what they did may be done again.",
		}, func() float64 { return float64(tasks.Lost()) }),
	)
}

// FollowerOpened counts an event stream that opened.
func (m *Metrics) FollowerOpened() { m.followers.Inc() }

// FollowerClosed ends what FollowerOpened began; slow says that the stream was
// ended because its reader did not keep up.
func (m *Metrics) FollowerClosed(slow bool) {
	m.followers.Dec()
	if slow {
		m.slow.Inc()
	}
}
