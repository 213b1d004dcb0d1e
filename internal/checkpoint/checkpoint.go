// Package checkpoint has the durable types of a thread and the contract of the
// stores that keep it.
//
// A thread is one versioned record, its Head, with checkpoints, task results,
// interrupts, runs and a numbered event log around it. It is changed by a Change
// only. A store applies a Change completely or not at all, and only when the Head
// is still at the revision that the writer saw. Every rule about leases,
// admission and answers is therefore plain Go above the store, and a store stays
// small.
package checkpoint

import (
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Source names the origin of a checkpoint.
type Source string

// The sources of a checkpoint, as LangGraph names them.
const (
	SourceInput  Source = "input"
	SourceLoop   Source = "loop"
	SourceUpdate Source = "update"
	SourceFork   Source = "fork"
)

// Checkpoint is the state of a graph at a superstep boundary. It is immutable
// once it is given to a store: later checkpoints share its parts.
type Checkpoint struct {
	ID        string // unique in the thread; sorts in the order of Seq
	Seq       uint64 // number in the thread, over all namespaces
	Parent    string // "" for the first of a namespace
	Namespace string // "" = the root graph, else "node:task|node:task…"
	Graph     string
	Version   string
	Run       string
	Source    Source
	Step      int // -1 = first input, 0 = after __start__
	Time      time.Time
	Metadata  map[string]string
	Parents   map[string]string // ancestor namespace → its checkpoint

	Channels []Channel  // every channel that was ever written, in the graph's order
	Seen     []NodeSeen // which versions each node has reacted to
	Updated  []string   // channels the last superstep changed, sorted
	Next     []NextTask // tasks that are due at this checkpoint
	Event    uint64     // number of the event that announced it; the events of its tasks follow
}

// Channel is a channel of a checkpoint. A channel that holds nothing (a consumed
// trigger) keeps its version.
type Channel struct {
	Name    string
	Version uint64
	// Stored is the Seq of the checkpoint that wrote the value. A store needs
	// to write only channels whose Stored equals the checkpoint's Seq.
	Stored uint64
	// Value is the JSON text, "" when the channel holds nothing. For a list
	// channel it is empty and List holds the elements.
	Value payload.JSON
	List  *List
	// Flag is the "finished" mark of a deferred channel.
	Flag bool
}

// List is the value of an append-like channel, stored as elements so that an
// append costs its own size only. Elements are shared between checkpoints.
type List struct {
	Items []payload.JSON
	// Segments name where the elements are stored, in order; their lengths add
	// up to len(Items). A fork starts a segment of its own.
	Segments []Segment
	// Appended is the number of elements at the end of Items that the checkpoint
	// itself appends to the last segment.
	Appended int
}

// Segment is the first Len elements of a stored list of elements. ID is the Seq
// of the checkpoint that began it.
type Segment struct {
	ID  uint64
	Len int
}

// NodeSeen records which versions of its triggers a node has reacted to.
type NodeSeen struct {
	Node     string
	Versions []SeenVersion
}

// SeenVersion is a trigger channel with the version that was seen.
type SeenVersion struct {
	Channel string
	Version uint64
}

// NextTask names a task that is due at a checkpoint.
type NextTask struct {
	ID   string
	Node string
}

// Task is the record of a task of the superstep after a checkpoint. It makes
// partial progress durable: a task that is Done is not run again.
type Task struct {
	ID         string
	Namespace  string
	Checkpoint string // the checkpoint the task belongs to
	Node       string
	State      TaskState
	Writes     []Write
	Failure    *Failure
	// Waiting lists the interrupts that keep the task from going on; for a
	// subgraph they are the interrupts of its tasks.
	Waiting []string
	Attempt int
	// Update, Goto and, as they are, Writes are the result of the node of a
	// returned task.
	Update payload.JSON
	Goto   []Send
}

// TaskState is how far a task has come.
type TaskState string

// States of a task that has a record.
const (
	TaskDone TaskState = "done"
	// TaskReturned is a task whose node has returned, and whose conditional edges
	// were not decided when the run was handed over.
	TaskReturned TaskState = "returned"
	TaskFailed   TaskState = "failed"
	TaskWaiting  TaskState = "waiting"
)

// Write is a value for a channel, in the order the task produced them.
type Write struct {
	Channel   string
	Value     payload.JSON
	Overwrite bool // bypass the reducer
}

// Memo is a recorded side effect of a task: the value that later attempts get
// instead of running the effect again.
type Memo struct {
	Task       string
	Checkpoint string
	Scope      string
	Key        string
	Index      int
	Value      payload.JSON
}

// Failure is why a task or a run failed, in words that may reach a client.
type Failure struct {
	Reason  string // of the table of reasons, e.g. NODE_FAILED
	Message string
	Node    string
	Type    string // the node's own error type, "" = unknown
	Stack   string // trimmed; shown to operators
	Attempt int
	// Details are the parameters of the reason (e.g. limit=25).
	Details map[string]string
}
