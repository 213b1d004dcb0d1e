package message

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Capability is what a worker runs: a node of a graph; an empty version or node
// means all of them.
type Capability = checkpoint.Capability

// Hello is how a worker introduces itself.
type Hello struct {
	Worker       string // unique per start of the process
	BuildID      string
	Capabilities []Capability
	HeldLeases   []string // leases of tasks that it still runs
	Labels       map[string]string
	Credit       Credit
	// ComparesAnswers says that it compares what its code asks with what was
	// answered, and reports which answers it has used.
	ComparesAnswers bool
}

// Credit is how many tasks a worker takes at the same time.
type Credit struct {
	Total    int
	PerNode  map[string]int // by "graph/node"
	Revision uint64
}

// Welcome is what the hub grants.
type Welcome struct {
	SessionID         string
	HeartbeatInterval time.Duration
	LeaseTTL          time.Duration
	RenewedLeases     []string
	// UndecidedLeases are those of Renewed whose run is not taken up here yet.
	UndecidedLeases []string
	LostLeases      []string
}

// Message is something to be sent to a worker: an Assignment, Cancel, Ack,
// Renewed, Drain, Throttle or Reply.
type Message interface{ isMessage() }

// Assignment is a task to run.
type Assignment struct {
	Token    string
	LeaseTTL time.Duration
	Delivery int
	Timeout  time.Duration // left for the attempt, 0 = any time
	Task     *runtime.Task
	Memos    []checkpoint.Memo // besides those in the journal of the task
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

// LeaseRenewal says that a lease which was undecided goes on.
type LeaseRenewal struct {
	Token    string
	LeaseTTL time.Duration
}

// DrainNotice says that the server is about to leave.
type DrainNotice struct {
	TimeLeft time.Duration
	Reason   string
}

// ThrottleNotice says that emits were dropped.
type ThrottleNotice struct {
	MinInterval   time.Duration
	DroppedEvents uint64
}

// CompletionReply answers a Completion that came on the stream.
type CompletionReply struct {
	Token   string
	Receipt Receipt
	Err     error // a *runtime.Error; the completion was not taken
}

func (Assignment) isMessage() {}

func (TaskCancel) isMessage() {}

func (HeartbeatAck) isMessage() {}

func (LeaseRenewal) isMessage() {}

func (DrainNotice) isMessage() {}

func (ThrottleNotice) isMessage() {}

func (CompletionReply) isMessage() {}
