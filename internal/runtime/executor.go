// Package runtime has the types that the engine shares with its callers: requests,
// refusals, tasks, and the ports to executors and observers. Package engine has the
// implementation.
package runtime

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// ErrSiblingFailed is the cause of a context that ends because another task of the
// superstep has failed. A result that the task still returns is stored, and the
// task never runs again. So an executor may wait a moment for it, but not after
// Task.Unwanted is closed.
var ErrSiblingFailed = errors.New("another task of the superstep failed")

// ErrElsewhere is the cause of a context that ends because the run continues at
// another server, or here under another lease. A worker may keep the run's task:
// see Task.StillRemote.
var ErrElsewhere = errors.New("the run goes on at another server")

// ErrMoved is, beside ErrElsewhere, the cause when the run moved to the server
// of its workers.
var ErrMoved = errors.New("the run has moved to its workers")

// Executor runs the code of nodes, in this process or elsewhere.
type Executor interface {
	// Execute makes one attempt. It must return when ctx ends, for ErrSiblingFailed
	// a moment later at most, and must not panic. A failure after the end of ctx is
	// ignored. A result counts.
	Execute(ctx context.Context, t *Task) pregel.Result
}

// Task is one attempt to run a node.
type Task struct {
	Thread    string
	Run       string
	ID        string // the same on every attempt; fit for an idempotency key
	Graph     *graph.Graph
	Node      *graph.Node
	Namespace string
	Step      int
	Attempt   int // 1 for the first

	State   pregel.View         // the channels the node reads
	Digests ValueDigests        // of State; nil = not known
	Send    payload.JSON        // the input given by a Send, "" for a triggered task
	Context payload.JSON        // per-run, read-only
	Failed  *checkpoint.Failure // for an error handler: the failure that it handles
	// Router, when set, makes the attempt decide a conditional edge. It does
	// not run the node. The Goto of the result holds the keys or sends.
	Router string
	// Branch names the conditional edge that Router is for.
	Branch string
	// Reduce, when set, makes the attempt combine writes. Node is then nil,
	// and the Update of the result is the new value of the channel.
	Reduce *pregel.Reduction
	// InWorker is true when Router is a function of a worker, not of this
	// process.
	InWorker bool

	MaxStep        int       // the superstep that may not be run any more
	Checkpoint     string    // from which the superstep started
	CheckpointTime time.Time // of that checkpoint: the same on every attempt
	Triggers       []string  // channels that made the task due

	Journal     pregel.Journal
	LastWaiting []string // the interrupts with which its last pass ended, its own or of a graph that it called
	Effects     Effects
	Host        Host // nil for code that runs in this process only
	Metadata    map[string]string
	// Stranded is true while no worker of this server can take the task. The
	// executor sets it. nil = not needed.
	Stranded *atomic.Bool
	// AlsoNeeds lists the further capabilities that a server's workers must
	// have to run the task.
	AlsoNeeds []checkpoint.Capability
	// RecoveredAt is the time at which this server took the run over, if the previous
	// server may have handed the task out to a worker that still runs it; else zero. The
	// executor must not hand the task to another worker before the lease of the first
	// worker can have ended.
	RecoveredAt time.Time
	// HandedOut is true when a previous server reported that it had handed the task
	// out. A server that crashed reports nothing.
	HandedOut bool
	// Fence counts the servers that have taken the run over.
	Fence uint64
	// WorkerWait is set by the executor while the task waits for a certain
	// worker. nil = no server is interested.
	WorkerWait *WorkerWait
	// StillRemote is set by the executor when it returns while a worker may
	// still run the task, because another server continues the run.
	StillRemote *atomic.Bool
	// Unresolved is set by the executor when it returns because another server
	// continues the run, and does not know whether a worker runs the task for the
	// previous server. nil = not needed.
	Unresolved *atomic.Bool
	// Trace is the W3C trace context of the attempt, nil = it is not traced.
	Trace map[string]string
	// Unwanted is closed when the run takes no result any more because it is
	// cancelled or belongs to another server. nil = not known.
	Unwanted <-chan struct{}
}

// ValueDigests know the digests of the values of a state.
type ValueDigests interface {
	// DigestValue returns the SHA-256 of the text of the value of a key.
	DigestValue(key string, v pregel.StoredValue) [sha256.Size]byte
}

// WorkerWait describes a task that waits for the worker that may run it: the
// task was recovered, or the worker is attached to another server.
type WorkerWait struct {
	Withheld atomic.Bool
	Holder   atomic.Pointer[string] // the server to which the worker is attached; nil = none is known
}

// Effects are the effects that a running node may have before it returns a
// result.
type Effects interface {
	// EmitEvent sends an event to the followers. It never blocks the node for long and may
	// drop ephemeral events.
	EmitEvent(e Emission)
	// RecordMemo records a memo durably and returns the stored value. That is
	// the earlier value if the memo existed.
	RecordMemo(ctx context.Context, m checkpoint.Memo) (value payload.JSON, existed bool, err error)
}

// Emission is one event from inside a node.
type Emission struct {
	Kind    checkpoint.EventKind // custom or message
	Name    string
	Value   payload.JSON
	Durable bool
}
