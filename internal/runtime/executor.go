// Package runtime is the vocabulary of the engine: what callers ask for, what executors
// run, what followers read, and what may be refused. The package engine does the work.
package runtime

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// ErrSiblingFailed is the cause of a context that ends because another task of the
// superstep has failed. What a task finishes all the same is kept, so that it
// never runs again: an executor may wait a moment for it, but not after
// Task.Unwanted is closed.
var ErrSiblingFailed = errors.New("another task of the superstep failed")

// ErrElsewhere is the cause of a context that ends because the run goes on at
// another server, or here under another lease. A worker that runs a task of it may
// keep the task: see Task.StillRemote.
var ErrElsewhere = errors.New("the run goes on at another server")

// ErrMoved is the cause besides when the run went to where its workers are.
var ErrMoved = errors.New("the run has moved to its workers")

// Executor runs the code of nodes. Where the code lives is its business.
type Executor interface {
	// Execute makes one attempt. It must return when ctx ends, for ErrSiblingFailed
	// a moment later at most, and must not panic. A failure after the end of
	// ctx is ignored; what the node has finished counts.
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
	Send    payload.JSON        // the input given by a Send, "" for a triggered task
	Context payload.JSON        // per-run, read-only
	Failed  *checkpoint.Failure // for an error handler: what it takes over
	// Router, when set, asks for the decision of a conditional edge instead
	// of the node's work: the result's Goto holds the keys or sends.
	Router string
	// Branch names the conditional edge that Router is for.
	Branch string
	// Reduce, when set, asks to combine writes instead of the node's work, and
	// Node is nil: the result's Update is the channel's new value.
	Reduce *pregel.Reduction
	// InWorker says that Router is a function of a worker, not of this process.
	InWorker bool

	MaxStep        int       // the superstep that may not be run any more
	Checkpoint     string    // the one the superstep started from
	CheckpointTime time.Time // of that checkpoint: the same on every attempt
	Triggers       []string  // channels that made the task due

	Journal     pregel.Journal
	LastWaiting []string // the interrupts that its last pass ended with, or those of a graph it called
	Effects     Effects
	Host        Host // nil for code that runs in this process only
	Metadata    map[string]string
	// Stranded is set by the executor as long as no worker of this server can
	// take the task. Nil = not needed.
	Stranded *atomic.Bool
	// AlsoNeeds is what a server must have workers for besides, to run the
	// task.
	AlsoNeeds []checkpoint.Capability
	// RecoveredAt is when this server took the run up, if the server before it may
	// have handed the task out to a worker that still runs it; else zero. The
	// executor must not hand it to another worker before the lease of that one can
	// have ended.
	RecoveredAt time.Time
	// HandedOut says that the server before has told that a worker may have the task.
	// One that died tells nothing.
	HandedOut bool
	// Fence counts how often servers have taken the run up.
	Fence uint64
	// WorkerWait is set by the executor while the task waits for a certain
	// worker. Nil when no server is interested.
	WorkerWait *WorkerWait
	// StillRemote is set by the executor when it returns while a worker may
	// still run the task, because another server continues the run.
	StillRemote *atomic.Bool
	// Unwanted is closed when the run takes no result any more: it is cancelled
	// or belongs to another server. Nil when that is not known.
	Unwanted <-chan struct{}
}

// WorkerWait says that a task waits for the worker that may run it: it was
// recovered, or the worker is attached to another server.
type WorkerWait struct {
	Withheld atomic.Bool
	Holder   atomic.Pointer[string] // the server to which the worker is attached; nil = none is known
}

// Effects are what a running node may do besides returning a result.
type Effects interface {
	// EmitEvent sends an event to the followers. It never blocks the node for
	// long and may drop what is ephemeral.
	EmitEvent(e Emission)
	// RecordMemo records a memo durably and returns the stored value, which is
	// another one if the memo existed.
	RecordMemo(ctx context.Context, m checkpoint.Memo) (value payload.JSON, existed bool, err error)
}

// Emission is one event from inside a node.
type Emission struct {
	Kind    checkpoint.EventKind // custom or message
	Name    string
	Value   payload.JSON
	Durable bool
}
