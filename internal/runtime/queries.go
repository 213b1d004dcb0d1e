package runtime

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/graph"
)

// CreateThreadRequest is a request to create a thread.
type CreateThreadRequest struct {
	Tenant          string // of a thread that the server makes; "" = tenant.Default
	Thread          string // "" = made by the server
	Graph           string // "" = decided by the first run
	Version         string // "" = the newest
	Metadata        map[string]string
	Expiration      Expiration
	KeepCheckpoints int // checkpoints to keep at rest; 0 = as the server says, -1 = all
	RequestID       string
	Digest          string // of the request's content, for RequestID
	By              Actor
}

// Expiration is the time at which a thread is deleted; zero = never. At most
// one field is set.
type Expiration struct {
	At  time.Time
	TTL time.Duration // after the last change
}

// UpdateThreadRequest changes the fields of a thread that a caller may change.
type UpdateThreadRequest struct {
	Thread string
	Etag   uint64 // revision the thread must be at, 0 = any
	// Metadata replaces all labels when Replace is set. Otherwise its keys are
	// set, and the keys in Drop are removed.
	Metadata        map[string]string
	ReplaceMetadata bool
	DropKeys        []string
	Expiration      *Expiration // nil = stays
	KeepCheckpoints *int        // nil = stays
	By              Actor
}

// ForkRequest is a request for a thread with another thread's history up to a
// checkpoint.
type ForkRequest struct {
	Source     string
	Checkpoint string            // of the root graph, "" = newest
	Thread     string            // "" = made by the server
	Metadata   map[string]string // nil = the source's
	RequestID  string
	Digest     string
	By         Actor
}

// CopyRequest is a request for a copy of a thread.
type CopyRequest struct {
	Source    string
	Thread    string            // "" = made by the server
	Metadata  map[string]string // nil = the source's
	RequestID string
	Digest    string
	By        Actor
}

// PruneRequest asks to remove the oldest part of a history.
type PruneRequest struct {
	Thread          string
	KeepCheckpoints int    // newest checkpoints to keep, at least 1
	Etag            uint64 // revision the thread must be at, 0 = any
	By              Actor
}

// HistoryQuery selects snapshots of one namespace, newest first.
type HistoryQuery struct {
	Thread     string
	Namespace  string // node names, with or without task ids
	Before     uint64 // only checkpoints of smaller Seq, 0 = all
	Limit      int
	WithValues bool // fill Snapshot.Values
	// MaxBytes is the number of bytes of snapshots that the caller takes at
	// once, 0 = any number. The first snapshot is shown if it alone is not
	// larger.
	MaxBytes int
	Memory   *CallMemory // of the call that shows them; nil = none
}

// GraphEntry is one version of a graph in a registry.
type GraphEntry struct {
	Graph    *graph.Graph
	Versions []string  // all there are of this name, oldest first
	Created  time.Time // zero for a graph that was never put
	// Skipped is the newest version where it does not compile, and Graph is an older one.
	Skipped string
}

// PutGraphRequest is a graph to check and, unless ValidateOnly, to keep for ever.
type PutGraphRequest struct {
	Tenant string      // of the graph and its subgraphs, which are named without it; "" = tenant.Default
	Spec   *graph.Spec // nil = Document is set
	// Document is the text of a graph file, YAML or JSON.
	Document     string
	DocumentName string // for the words of problems, "" = unknown
	ValidateOnly bool
	// Approve decides whether a version may be stored that the server does not have, nil =
	// each may. It compares with the versions that there are, and is called again when they
	// have changed before the version was stored.
	Approve func(ctx context.Context, next *graph.Graph) error
}

// DeleteGraphRequest is which versions of a graph to delete.
type DeleteGraphRequest struct {
	Name    string
	Version string // "" = all
	Force   bool   // also versions in use
	// Approve decides whether they may be deleted, nil = they may. It is called again when
	// the versions of the graph have changed before all were deleted.
	Approve func(ctx context.Context) error
}

// Worker is a connected process that runs nodes outside of the server.
type Worker struct {
	ID            string
	Nodes         []string // "graph/node"
	Slots         int      // tasks it can run at the same time
	FreeSlots     int      // number of further tasks that it could take now
	LastHeartbeat time.Time
	Labels        map[string]string
	Draining      bool
	Build         string
}
