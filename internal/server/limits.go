package server

import (
	"cmp"
	"crypto/tls"
	"math"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/statistics"
	"github.com/graphd-dev/graphd/internal/telemetry"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/endpoint"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// LimitOptions bound the memory and connections that clients and endpoints can
// occupy. The defaults fit a container with 1 GiB.
type LimitOptions struct {
	MaxLiveRuns      int
	MaxLiveBytes     int64
	MaxConnections   int
	MaxCalls         int
	MaxStreams       int
	MaxThreadStreams int
	MaxInboxStreams  int
	MaxOpenCalls     int
	MaxIncoming      int
	RequestPatience  time.Duration
	MaxUnread        int
	MaxStreamUnread  int
	MaxRecentEvents  int
	MaxRecentThreads int
	MaxCopyBytes     int
	MaxTaskMemoBytes int64
	UnreadPatience   time.Duration
	MaxPayload       int
	MaxDepth         int
	MaxMessage       int
	ConnectionAge    time.Duration
	ConnectionGrace  time.Duration
	ConnectionIdle   time.Duration
	Heartbeat        time.Duration
	Stall            time.Duration
	Reflection       bool
	MaxEndpoints     int
	EndpointIdle     time.Duration
	MaxWorkers       int
	MaxWorkerBytes   int64
	MaxKeptBytes     int64
	MaxWaitingEvents int64
	MaxWaitingResult int64
	MetricNames      int
	StatisticsGroups int
	StepLimit        int
	ParallelTasks    int
	QueuedRuns       int
	Assistants       int
	AssistantBytes   int
	Items            int
	SearchedItems    int
	RunWebhooks      int
	MaxCrons         int
	CronBytes        int
	StoreTimeout     time.Duration
}

// RegisterFlags registers the limits, with their defaults.
func (o *LimitOptions) RegisterFlags(f *pflag.FlagSet) {
	f.IntVar(&o.MaxConnections, "max-connections", 5000, "how many clients may be connected; others wait until one leaves")
	f.IntVar(&o.MaxCalls, "max-connection-calls", 5000, "how many calls one connection may have at a time; further ones wait in the client")
	f.IntVar(&o.MaxOpenCalls, "max-open-calls", 10_000,
		"how many calls all connections may have at a time; further ones get TOO_MANY_REQUESTS")
	f.IntVar(&o.MaxIncoming, "max-incoming", 64<<20,
		"how many bytes of requests may arrive or be served at a time; slow ones are cancelled, large ones get TOO_MANY_REQUESTS")
	f.DurationVar(&o.RequestPatience, "request-patience", 30*time.Second, "how long a request may take to arrive, before its call is cancelled")
	f.IntVar(&o.MaxLiveRuns, "max-live-runs", 10_000,
		"how many runs a server may drive at a time; further ones get TOO_MANY_RUNS, and answers wait in the store")
	f.Int64Var(&o.MaxLiveBytes, "max-live-bytes", 0,
		"how many bytes the runs that a server drives may hold together; further ones wait between two supersteps "+
			"(default: a quarter of the memory that Go may use)")
	f.IntVar(&o.MaxStreams, "max-streams", 4000,
		"how many streams and calls that wait for a run may be open; further ones get TOO_MANY_SUBSCRIBERS")
	f.IntVar(&o.MaxThreadStreams, "max-thread-streams", 1000, "how many of the streams may be watches of one thread")
	f.IntVar(&o.MaxInboxStreams, "max-inbox-streams", 256, "how many of the streams may follow the questions of all threads")
	f.IntVar(&o.MaxUnread, "max-unread", 64<<20, "how many bytes may wait for all clients to read them; streams go on from the log later")
	f.IntVar(&o.MaxStreamUnread, "max-stream-unread", 256<<10, "how many bytes may wait for the client of one stream")
	f.IntVar(&o.MaxRecentEvents, "max-recent-events", 64<<20,
		"how many bytes of new events are kept for followers; a follower that is further behind reads the store")
	f.IntVar(&o.MaxRecentThreads, "max-recent-threads", 32<<20,
		"how many bytes of threads at rest are kept, so that an answer to one of them reads nothing before its change")
	f.IntVar(&o.MaxCopyBytes, "max-copy-bytes", 64<<20, "how many bytes of a thread a copy may have, all of which are held until it is stored")
	f.Int64Var(&o.MaxTaskMemoBytes, "max-task-memo-bytes", 0,
		"how many bytes the memos of a task may take together, 256 of each besides its texts included (default: half of --max-message)")
	f.DurationVar(&o.UnreadPatience, "unread-patience", 2*time.Second,
		"how long a client may read nothing while others wait because of --max-unread, before it is disconnected")
	f.IntVar(&o.MaxPayload, "max-payload", 1<<20, "how many bytes a value that is sent may have, and one that is shown in an event")
	f.IntVar(&o.MaxDepth, "max-depth", 128, "how deep a value that is sent may be nested")
	f.IntVar(&o.MaxMessage, "max-message", 8<<20, "how many bytes a whole gRPC message may have, both ways")
	f.DurationVar(&o.ConnectionAge, "connection-age", 0,
		"close connections of this age, so that clients spread over servers again; streams end in order before (default: never)")
	f.DurationVar(&o.ConnectionGrace, "connection-grace", 30*time.Second, "how long calls may go on after that")
	f.DurationVar(&o.ConnectionIdle, "connection-idle", 5*time.Minute,
		"close connections that have had no call for so long; streams are calls (0: never)")
	f.DurationVar(&o.Heartbeat, "heartbeat", 15*time.Second, "how often a quiet stream says that it is alive")
	f.DurationVar(&o.Stall, "stall", 30*time.Second, "how long a client may leave its stream unread before it is ended with SLOW_CONSUMER")
	f.BoolVar(&o.Reflection, "reflection", true, "tell clients like grpcurl which calls there are")
	f.IntVar(&o.MaxEndpoints, "max-endpoints", 256, "how many connections to endpoints of nodes there may be; calls of further ones wait")
	f.IntVar(&o.MaxWorkers, "max-workers", 2000, "how many workers may be connected; further ones get TOO_MANY_REQUESTS")
	f.Int64Var(&o.MaxWorkerBytes, "max-worker-bytes", 32<<20,
		"how many bytes the manifests of connected workers may take: nodes, labels, credit; further ones get TOO_MANY_REQUESTS")
	f.Int64Var(&o.MaxKeptBytes, "max-kept-bytes", 64<<20,
		"how many bytes of values of states one worker may be told to keep, so that each is sent once; 0: every task gets all of its values")
	f.Int64Var(&o.MaxWaitingEvents, "max-waiting-events", 64<<20,
		"how many bytes of events of nodes may wait to be stored or shown; tokens beyond it are dropped, others keep their sender waiting")
	f.Int64Var(&o.MaxWaitingResult, "max-waiting-results", 64<<20,
		"how many bytes of results that came on the streams of workers may wait for their runs; further ones are to be sent by CompleteTask")
	f.IntVar(&o.MetricNames, "metric-names", telemetry.DefaultLabelValues,
		"how many graphs, nodes and reasons have metrics of their own; further ones are counted as other")
	f.IntVar(&o.StatisticsGroups, "statistics-groups", statistics.DefaultLimit,
		"how many groups of a tenant have statistics of their own, each once for each graph that asks it, and how many graphs and nodes; "+
			"further groups are counted together; all tenants have ten times as many")
	f.IntVar(&o.StepLimit, "step-limit", 10_000, "how many supersteps a run may have when neither it nor its graph says")
	f.IntVar(&o.ParallelTasks, "parallel-tasks", 64, "how many tasks of one superstep run at the same time")
	f.IntVar(&o.QueuedRuns, "queued-runs", 64, "how many runs may wait behind one another in a thread; further ones get THREAD_QUEUE_FULL")
	f.IntVar(&o.RunWebhooks, "run-webhooks", 10_000, "how many webhooks of runs of a tenant may wait to be called; further ones get TOO_MANY_REQUESTS")
	f.IntVar(&o.MaxCrons, "max-crons", 1000, "how many crons a tenant may keep; further ones get TOO_MANY_CRONS")
	f.IntVar(&o.CronBytes, "max-cron-bytes", 256<<10,
		"how many bytes run, source and metadata of a cron may have together; larger ones get PAYLOAD_TOO_LARGE")
	f.IntVar(&o.Assistants, "assistants", 10_000, "how many assistants a tenant may keep; further ones get TOO_MANY_ASSISTANTS")
	f.IntVar(&o.AssistantBytes, "max-assistant-bytes", 256<<10,
		"how many bytes context, config, metadata, name and description of a version of an assistant may have together; larger ones get PAYLOAD_TOO_LARGE")
	f.IntVar(&o.Items, "items", 100_000, "how many items of the store API a tenant may keep; further ones get TOO_MANY_ITEMS")
	f.IntVar(&o.SearchedItems, "items-searched", 10_000, "how many items one search may look at; one that would look at more gets ITEM_SEARCH_TOO_BROAD")
	f.DurationVar(&o.StoreTimeout, "store-timeout", 5*time.Second,
		"how long a call waits for the store; then it gets STORE_UNAVAILABLE; with sqlite changes go by --change-wait, plus 30 s")
	f.DurationVar(&o.EndpointIdle, "endpoint-idle", time.Minute, "how long a connection to an endpoint stays open without calls")
}

// validateOptions refuses limits that are too small to work with.
func (o *LimitOptions) validateOptions() error {
	for _, limit := range []struct {
		flag        string
		value, most int
	}{
		{"max-connections", o.MaxConnections, 1 << 20},
		{"max-connection-calls", o.MaxCalls, 1 << 20},
		{"max-open-calls", o.MaxOpenCalls, 1 << 24},
		{"max-incoming", o.MaxIncoming, 1 << 40},
		{"max-live-runs", o.MaxLiveRuns, 1 << 24},
		{"max-streams", o.MaxStreams, 1 << 20},
		{"max-thread-streams", o.MaxThreadStreams, 1 << 20},
		{"max-inbox-streams", o.MaxInboxStreams, 1 << 20},
		{"max-unread", o.MaxUnread, 1 << 40},
		{"max-stream-unread", o.MaxStreamUnread, 1 << 30},
		{"max-recent-events", o.MaxRecentEvents, 1 << 40},
		{"max-recent-threads", o.MaxRecentThreads, 1 << 40},
		{"max-copy-bytes", o.MaxCopyBytes, 1 << 40},
		{"max-payload", o.MaxPayload, 1 << 30},
		{"max-depth", o.MaxDepth, 10_000},
		{"max-message", o.MaxMessage, 1 << 30},
		{"metric-names", o.MetricNames, 1 << 20},
		{"statistics-groups", o.StatisticsGroups, 1000},
		{"step-limit", o.StepLimit, 1 << 30},
		{"parallel-tasks", o.ParallelTasks, 1 << 20},
		{"queued-runs", o.QueuedRuns, 1 << 20},
		{"assistants", o.Assistants, 1 << 20},
		{"max-assistant-bytes", o.AssistantBytes, 1 << 30},
		{"items", o.Items, 1 << 30},
		{"items-searched", o.SearchedItems, 1 << 24},
		{"run-webhooks", o.RunWebhooks, 1 << 20},
		{"max-crons", o.MaxCrons, 1 << 20},
		{"max-cron-bytes", o.CronBytes, 1 << 30},
		{"max-endpoints", o.MaxEndpoints, 1 << 20},
		{"max-workers", o.MaxWorkers, 1 << 20},
		{"max-worker-bytes", int(o.MaxWorkerBytes), 1 << 40},
		{"max-waiting-events", int(o.MaxWaitingEvents), 1 << 40},
		{"max-waiting-results", int(o.MaxWaitingResult), 1 << 40},
	} {
		if limit.value < 1 || limit.value > limit.most {
			return exit.Usagef("--%s is %d", limit.flag, limit.value).WithHint("want a number from 1 to %d", limit.most)
		}
	}
	for flag, value := range map[string]time.Duration{
		"request-patience": o.RequestPatience, "heartbeat": o.Heartbeat, "stall": o.Stall, "connection-grace": o.ConnectionGrace,
		"store-timeout": o.StoreTimeout, "unread-patience": o.UnreadPatience, "endpoint-idle": o.EndpointIdle,
	} {
		if value <= 0 {
			return exit.Usagef("--%s is %s", flag, value).WithHint("want more than 0, like 30s")
		}
	}
	switch {
	case o.MaxLiveBytes < 0:
		return exit.Usagef("--max-live-bytes is %d", o.MaxLiveBytes).WithHint("want 0 (a quarter of the memory that Go may use) or more")
	case o.MaxTaskMemoBytes < 0:
		return exit.Usagef("--max-task-memo-bytes is %d", o.MaxTaskMemoBytes).WithHint("want 0 (half of --max-message) or more")
	case o.MaxKeptBytes < 0:
		return exit.Usagef("--max-kept-bytes is %d", o.MaxKeptBytes).WithHint("want 0 (workers keep nothing) or more")
	case o.ConnectionAge < 0:
		return exit.Usagef("--connection-age is %s", o.ConnectionAge).WithHint("want 0 (never) or more, like 1h")
	case o.ConnectionIdle < 0:
		return exit.Usagef("--connection-idle is %s", o.ConnectionIdle).WithHint("want 0 (never) or more, like 5m")
	case o.MaxMessage < o.MaxPayload:
		return exit.Usagef("--max-message is %d: a message must have room for a value of --max-payload", o.MaxMessage).
			WithHint("want at least %d", o.MaxPayload)
	case o.MaxIncoming < 4*o.MaxMessage:
		return exit.Usagef("--max-incoming is %d: there must be room for several messages of --max-message", o.MaxIncoming).
			WithHint("want at least %d", 4*o.MaxMessage)
	}
	return nil
}

func (o *LimitOptions) payloadLimits() payload.Limits {
	return payload.Limits{MaxBytes: o.MaxPayload, MaxDepth: o.MaxDepth}
}

// endpointOptions returns the limits towards node services.
func (o *LimitOptions) endpointOptions(losses int, policy endpoint.Policy, secure func() *tls.Config, log *zap.Logger) endpoint.Options {
	return endpoint.Options{
		Policy: policy, TLS: secure,
		Limits: o.payloadLimits(), MaxMessageBytes: o.MaxMessage, IdleTimeout: o.EndpointIdle, MaxConns: o.MaxEndpoints,
		MaxLosses: losses, Log: log,
	}
}

// setWorkerLimits sets the limits of workers.
func (o *LimitOptions) setWorkerLimits(w *worker.Options) {
	w.MaxWorkers, w.MaxProfileBytes, w.MaxEventBytes, w.MaxWaitingResultBytes = o.MaxWorkers, o.MaxWorkerBytes, o.MaxWaitingEvents, o.MaxWaitingResult
	w.MaxKeptBytes = cmp.Or(o.MaxKeptBytes, -1)
}

// setEngineLimits sets the limits of runs.
func (o *LimitOptions) setEngineLimits(r *engine.Options) {
	r.MaxLiveBytes = o.liveByteLimit(debug.SetMemoryLimit(-1))
	r.MaxTaskMemoBytes = cmp.Or(o.MaxTaskMemoBytes, max(int64(o.MaxMessage)/2, 1))
	r.RecentEventBytes, r.RecentViewBytes, r.MaxCopyBytes = o.MaxRecentEvents, o.MaxRecentThreads, o.MaxCopyBytes
	r.StatisticsLimit, r.RunWebhookLimit = o.StatisticsGroups, o.RunWebhooks
	r.AssistantLimit, r.AssistantBytes = o.Assistants, o.AssistantBytes
	r.CronLimit, r.CronBytes, r.ParseCronRun = o.MaxCrons, o.CronBytes, wire.CronRunParser(o.payloadLimits())
	r.ItemLimit, r.SearchedItems = o.Items, o.SearchedItems
	r.StepLimit, r.ParallelTasks, r.QueueLimit, r.StoreTimeout = o.StepLimit, o.ParallelTasks, o.QueuedRuns, o.StoreTimeout
}

// The part of the memory that live runs may hold. Without a limit for Go, the
// memory is that of a container with 1 GiB.
const (
	liveMemoryDivisor = 4
	defaultLiveBytes  = 256 << 20
)

// liveByteLimit returns the bytes that live runs may hold when Go may use so much
// memory.
func (o *LimitOptions) liveByteLimit(memory int64) int64 {
	switch {
	case o.MaxLiveBytes > 0:
		return o.MaxLiveBytes
	case memory == math.MaxInt64:
		return defaultLiveBytes
	}
	return max(memory/liveMemoryDivisor, 1)
}

// setTransportLimits sets the limits towards clients.
func (o *LimitOptions) setTransportLimits(t *transport.Options) {
	t.Limits, t.MaxMessageBytes = o.payloadLimits(), o.MaxMessage
	t.MaxConnections, t.MaxCalls, t.MaxStreams = o.MaxConnections, o.MaxCalls, o.MaxStreams
	t.MaxOpenCalls, t.MaxIncoming, t.RequestPatience = o.MaxOpenCalls, o.MaxIncoming, o.RequestPatience
	t.MaxThreadStreams, t.MaxInboxStreams = o.MaxThreadStreams, o.MaxInboxStreams
	t.MaxConnectionAge, t.ConnectionGrace = o.ConnectionAge, o.ConnectionGrace
	t.ConnectionIdle = cmp.Or(o.ConnectionIdle, -1)
	t.MaxUnread, t.MaxStreamUnread, t.UnreadPatience = o.MaxUnread, o.MaxStreamUnread, o.UnreadPatience
	t.Heartbeat, t.StallTimeout, t.NoReflection = o.Heartbeat, o.Stall, !o.Reflection
}
