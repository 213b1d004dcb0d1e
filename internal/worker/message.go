package worker

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Served is what a worker runs: a node of a graph; an empty version or node
// means all of them.
type Served = checkpoint.Served

// Hello is how a worker introduces itself.
type Hello struct {
	Worker string // unique per start of the process
	Build  string
	Serves []Served
	Held   []string // leases of tasks that it still runs
	Labels map[string]string
	Credit Credit
	// Compares says that it compares what its code asks with what was answered,
	// and tells which answers it has used.
	Compares bool
}

// Credit is how many tasks a worker takes at the same time.
type Credit struct {
	Total    int
	PerNode  map[string]int // by "graph/node"
	Revision uint64
}

// Welcome is what the hub grants.
type Welcome struct {
	Session  string
	Beat     time.Duration
	LeaseTTL time.Duration
	Renewed  []string
	// Undecided are those of Renewed whose run is not taken up here yet.
	Undecided []string
	Lost      []string
}

// Message is something to be sent to a worker: an Assignment, Cancel, Ack,
// Renewed, Drain, Throttle or Reply.
type Message interface{ message() }

// Assignment is a task to run.
type Assignment struct {
	Token    string
	TTL      time.Duration
	Delivery int
	Timeout  time.Duration // left for the attempt, 0 = any time
	Task     *runtime.Task
	Memos    []checkpoint.Memo // besides those in the journal of the task
}

// Cancel is a task to stop.
type Cancel struct {
	Token  string
	Reason string
	Grace  time.Duration
}

// Ack answers a beat.
type Ack struct {
	Number    uint64
	Lost      []string
	Undecided []string
}

// Renewed says that a lease which was undecided goes on.
type Renewed struct {
	Token string
	TTL   time.Duration
}

// Drain says that the server is about to leave.
type Drain struct {
	Left   time.Duration
	Reason string
}

// Throttle says that emits were dropped.
type Throttle struct {
	MinInterval time.Duration
	Dropped     uint64
}

// Reply answers a Completion that came on the stream.
type Reply struct {
	Token   string
	Receipt Receipt
	Err     error // a *runtime.Error; the completion was not taken
}

func (Assignment) message() {}
func (Cancel) message()     {}
func (Ack) message()        {}
func (Renewed) message()    {}
func (Drain) message()      {}
func (Throttle) message()   {}
func (Reply) message()      {}
