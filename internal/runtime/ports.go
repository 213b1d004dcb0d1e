package runtime

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Graphs finds compiled graphs.
type Graphs interface {
	// Graph returns a version of a graph, the newest for an empty version. The
	// error is an *Error: GRAPH_NOT_FOUND, GRAPH_VERSION_UNAVAILABLE, or
	// STORE_UNAVAILABLE when it had to be read and could not be.
	Graph(name, version string) (*graph.Graph, error)
	// Versions lists the newest version of a graph and those that were put before it,
	// newest first, up to a number. It does not read the store.
	Versions(name string, most int) []string
}

// Schemas checks values against JSON Schemas.
type Schemas interface {
	// Check returns the violations of a value, nil when it is valid. An error
	// that is an *Error refuses the check; any other error means that the
	// schema itself is broken. A check may have to wait until ctx ends.
	Check(ctx context.Context, schema, value payload.JSON) ([]Violation, error)
}

// Conditions evaluates the conditions of policies, which say whether an answer agrees.
type Conditions interface {
	// Check reports what is wrong with a condition.
	Check(condition string) error
	// Holds evaluates a condition over an answer. It may wait until ctx ends.
	Holds(ctx context.Context, condition string, answer payload.JSON) (bool, error)
}

// Observer receives reports of the engine, for metrics. It must not block. A name is the
// name of a graph. Names, nodes, states and reasons become labels.
type Observer interface {
	RunStarted(name string) // admitted
	RunDriven(name string)  // each time that this process takes the run up
	// RunEnded follows each RunDriven. state is "lost" when the run continues
	// elsewhere without this process having ended its part.
	RunEnded(name, state string, took time.Duration)
	NodeEnded(name, node, outcome string, took time.Duration)
	CommitEnded(took time.Duration, err error)
	InterruptRaised(name, reason string)
	InterruptResolved(name, state string)
	// InterruptEnded reports how the wait for an answer ended, once for each interrupt that
	// was raised: a checkpoint.Outcome, and how long it took.
	InterruptEnded(name, outcome string, wait time.Duration)
	// ThreadsPoisoned reports the number of quarantined threads. The engine fails whenever
	// it processes such a thread.
	ThreadsPoisoned(n int)
	// LiveBytes reports the number of bytes that the live runs of this process
	// hold.
	LiveBytes(n int64)
	// RunEvicted reports a run that stopped here because live runs hold too
	// many bytes. The run waits for memory. RunEnded follows.
	RunEvicted(name string)
	// CronFired reports a firing of a cron, with the graph of its run: CronStarted or
	// CronRefused. A firing that a server repeats for another one may be reported twice.
	CronFired(name, outcome string)
}

// Workers are those that are attached to this server.
type Workers interface {
	// SetPeers sets the observers of the workers. It reports to them the capabilities of
	// the workers, now and after each change.
	SetPeers(peers Peers)
	// Covers reports whether an attached worker has the capability.
	Covers(need checkpoint.Capability) bool
	// RecheckTasks checks all waiting tasks again: the workers of other servers
	// have changed.
	RecheckTasks()
}

// Peers are the other servers on the same store, if any, and the runs of this
// server that wait for workers. The methods don't block.
type Peers interface {
	// SetCapabilities reports the capabilities that the workers of this server take from
	// now on.
	SetCapabilities(served []checkpoint.Capability)
	// Cover reports whether one peer has workers for all the needs.
	Cover(needs ...checkpoint.Capability) bool
	// SetClaims reports which leases of other servers are known here.
	SetClaims(claims checkpoint.Claims)
	// FindHolder returns the peer to which the worker of a lease is attached, if that
	// peer also has workers for all the needs; "" = no known peer.
	FindHolder(lease string, needs ...checkpoint.Capability) string
	// IsAwaited reports whether a peer withholds the task of a lease.
	IsAwaited(lease string) bool
	// UnservedTasks returns the number of tasks that wait for workers and that
	// no hub was asked to run. Their runs have released their slots.
	UnservedTasks() int
}
