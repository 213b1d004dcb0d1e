package message

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/kept"
)

// Capability is a node of a graph that a worker runs. An empty version or node
// means all of them.
type Capability = checkpoint.Capability

// Hello is how a worker introduces itself.
type Hello struct {
	Worker       string // unique per start of the process
	Principal    string // the authenticated caller whose worker it is, "" = not known
	Number       uint64 // in the order in which hellos have come
	BuildID      string
	Capabilities []Capability
	HeldLeases   []string // leases of tasks that it still runs
	Labels       map[string]string
	Credit       Credit
	// ComparesAnswers is true when the worker compares the questions of its code
	// with the answered questions, and reports the answers that it has used.
	ComparesAnswers bool
	KeptBytes       int64 // of values that the worker keeps from one task to the next
}

// Credit is the number of tasks that a worker takes at the same time.
type Credit struct {
	Total    int
	PerNode  map[string]int // by "graph/node"
	Revision uint64
}

// Welcome is the hub's answer to a Hello.
type Welcome struct {
	SessionID         string
	HeartbeatInterval time.Duration
	LeaseTTL          time.Duration
	RenewedLeases     []string
	// UndecidedLeases are those of RenewedLeases whose runs this server does not drive
	// yet.
	UndecidedLeases []string
	LostLeases      []string
}

// Message is something to be sent to a worker: an Assignment, TaskCancel, HeartbeatAck,
// LeaseRenewal, DrainNotice, ThrottleNotice or CompletionReply.
type Message interface{ isMessage() }

// Assignment is a task to run.
type Assignment struct {
	Token    string
	LeaseTTL time.Duration
	Delivery int
	Timeout  time.Duration // left for the attempt, 0 = any time
	Task     *runtime.Task
	Memos    []checkpoint.Memo // beyond those in the journal of the task
	// Kept are the values that the worker keeps. nil = it gets all values.
	Kept *kept.Table
}

// TaskCancel is a task to stop.
type TaskCancel struct {
	Token  string
	Reason string
	Grace  time.Duration
}

// HeartbeatAck answers a heartbeat.
type HeartbeatAck struct {
	Number          uint64
	LostLeases      []string
	UndecidedLeases []string
}

// LeaseRenewal reports that an undecided lease is valid.
type LeaseRenewal struct {
	Token    string
	LeaseTTL time.Duration
}

// DrainNotice announces that the server will stop.
type DrainNotice struct {
	TimeLeft time.Duration
	Reason   string
}

// ThrottleNotice reports that emissions were dropped.
type ThrottleNotice struct {
	MinInterval   time.Duration
	DroppedEvents uint64
}

// CompletionReply answers a Completion that came on the stream.
type CompletionReply struct {
	Token   string
	Receipt Receipt
	Err     error // a *runtime.Error that refused the completion
}

func (Assignment) isMessage() {}

func (TaskCancel) isMessage() {}

func (HeartbeatAck) isMessage() {}

func (LeaseRenewal) isMessage() {}

func (DrainNotice) isMessage() {}

func (ThrottleNotice) isMessage() {}

func (CompletionReply) isMessage() {}
