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
}

// Schemas checks values against JSON Schemas.
type Schemas interface {
	// Check returns what is wrong with a value, place by place; nil when it
	// fits. The error says that the schema itself is broken or, an *Error, why
	// the check is refused. A check may have to wait until ctx ends.
	Check(ctx context.Context, schema, value payload.JSON) ([]Violation, error)
}

// Observer is told what happened, for metrics. It must not block. A name is a
// graph's; names, nodes, states and reasons are labels.
type Observer interface {
	RunStarted(name string) // admitted
	RunDriven(name string)  // taken up by this process, each time
	// RunEnded follows each RunDriven; state is "lost" when the run goes on
	// elsewhere without this process having ended its part.
	RunEnded(name, state string, took time.Duration)
	NodeEnded(name, node, outcome string, took time.Duration)
	CommitEnded(took time.Duration, err error)
	InterruptRaised(name, reason string)
	InterruptResolved(name, state string)
	// ThreadsPoisoned reports how many threads are quarantined: the engine
	// fails whenever it takes them.
	ThreadsPoisoned(n int)
	// LiveBytes tells how many bytes the live runs of this process hold.
	LiveBytes(n int64)
	// RunEvicted reports a run that ended here because live runs hold too many
	// bytes; it waits for memory. RunEnded follows.
	RunEvicted(name string)
}

// Workers are those that are attached to this server.
type Workers interface {
	// SetPeers makes those known that want to know of workers. From then on they
	// are told what the workers take, now and whenever that changes.
	SetPeers(peers Peers)
	// Covers reports whether a worker is attached that takes what is needed.
	Covers(need checkpoint.Capability) bool
	// RecheckTasks checks all waiting tasks again: the workers of other servers
	// have changed.
	RecheckTasks()
}

// Peers are the other servers on the same store, if there are any, and the runs of
// this one that wait for workers. The methods don't block.
type Peers interface {
	// SetCapabilities tells them what the workers of this server take from now on.
	SetCapabilities(served []checkpoint.Capability)
	// Cover reports whether one of them has workers for all that is needed.
	Cover(needs ...checkpoint.Capability) bool
	// SetClaims tells them which leases of other servers are known here.
	SetClaims(claims checkpoint.Claims)
	// FindHolder names the one to which the worker of such a lease is attached, if that
	// has workers for all that is needed besides; "" = none, as far as is known.
	FindHolder(lease string, needs ...checkpoint.Capability) string
	// IsAwaited reports whether one of them keeps the task of such a lease back.
	IsAwaited(lease string) bool
	// UnservedTasks is how many tasks wait for workers besides those that a hub
	// was asked for: their runs have released their slots.
	UnservedTasks() int
}
