package runtime

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Concurrency is the policy of a new run when another run of the thread is
// active.
type Concurrency int

// Policies for a thread that is busy.
const (
	RejectBusy Concurrency = iota
	EnqueueBusy
	CancelActive
	RollbackActive
)

// OpenPolicy is the policy of a new run when the thread waits for answers.
type OpenPolicy int

// Policies for a thread that is interrupted.
const (
	RejectOpen OpenPolicy = iota
	DiscardOpen
	EnqueueOpen
)

// StartRequest is a request for a run. Input and From may both be empty: the
// run then continues the thread.
type StartRequest struct {
	Tenant       string // of a thread that the server makes; "" = tenant.Default
	Thread       string // "" = made by the server
	CreateThread bool
	Graph        string // "" = the thread's
	Version      string // "" = the thread's, or the newest
	Run          string // "" = made by the server
	Metadata     map[string]string
	// ThreadMetadata are labels that the thread gets with the run.
	ThreadMetadata map[string]string
	Concurrency    Concurrency
	Open           OpenPolicy
	Request        checkpoint.RunRequest
	RequestID      string
	Digest         string // of the request's content, for RequestID
	Webhook        string // URL that is told when the run stops, "" = none; needs a RequestID
	By             Actor
	// OnlyGraph is the graph that the thread must have if there is one, nil = any. The
	// caller was allowed to make the call for this graph.
	OnlyGraph *string
	OnStart   StartHook // nil = the run is not followed from its beginning
}

// StartHook is called before a run begins to work here, with the event from which to
// follow the run. A follower that starts there misses no event, not even an ephemeral
// event. The hook may be called several times; the last call counts.
type StartHook func(thread string, after uint64)

// NotifyStart calls the hook unless it is nil.
func (s StartHook) NotifyStart(thread string, after uint64) {
	if s != nil {
		s(thread, after)
	}
}

// Coverage is the number of open interrupts that a resume must answer.
type Coverage int

// Coverages of a resume.
const (
	CoverPartial Coverage = iota // run the tasks whose interrupts are all answered
	CoverAll                     // refuse unless every open interrupt is covered
	CoverCollect                 // store, and run when the last answer is in
)

// Response is the answer to one interrupt.
type Response struct {
	Interrupt string
	Value     payload.JSON
	Dismissed bool
	Note      string // or the reason of the dismissal
	Etag      string
	Seen      string // digest of what was shown, "" = any
}

// ResumeRequest answers interrupts and continues the thread.
type ResumeRequest struct {
	Thread    string
	Responses []Response // empty = continue after breakpoints only
	// Single is a response without an id, for the only open interrupt.
	Single    *Response
	Coverage  Coverage
	Update    payload.JSON
	Goto      []checkpoint.Send
	Metadata  map[string]string
	Expected  string
	Settings  *RunSettings // nil = the run keeps its settings
	RequestID string
	Digest    string
	Webhook   string // URL that is told when the run stops next, "" = none; needs a RequestID
	By        Actor
	OnlyGraph *string   // that the thread must have, nil = any; see StartRequest
	OnStart   StartHook // nil = the run is not followed from here
	// OnQuestion is told of each question that is answered, with the pointers to its secret parts,
	// before the answer is checked; "" is the only open one, when Single names none. nil = it
	// is not wanted.
	OnQuestion func(interrupt string, secret []string)
}

// Started describes an accepted start or resume.
type Started struct {
	Run        checkpoint.Run
	Head       checkpoint.Head
	After      uint64 // follow the log from here to see all of the run's part
	IsAttached bool   // the request id was known: no new run was begun
}

// CancelRequest is a request to cancel a run.
type CancelRequest struct {
	Thread   string
	Run      string // "" = the active run
	Rollback bool
	Grace    time.Duration // also checkpoint.DrainGrace, checkpoint.PauseGrace
	Reason   string
	By       Actor
	Memory   *CallMemory // of the call that shows the run; nil = none
}

// KeepsQuestions reports whether the questions of the run are left.
func (r *CancelRequest) KeepsQuestions() bool {
	c := checkpoint.Cancel{Rollback: r.Rollback, Grace: r.Grace}
	return c.KeepsQuestions()
}

// StateRequest selects a state to read.
type StateRequest struct {
	Thread        string
	Namespace     string // node names, with or without task ids
	Checkpoint    string // "" = newest, with the progress of its superstep
	Keys          []string
	WithSubgraphs bool
	OnlyOutput    bool // of the newest state nothing but the values of its output keys
	// MaxBytes is the number of bytes of results, interrupts and states of
	// subgraphs that the caller takes, 0 = any number.
	MaxBytes int
	Memory   *CallMemory // of the call that shows the state; nil = none
}

// Snapshot is a state in the form for callers.
type Snapshot struct {
	Values     payload.JSON
	Next       []string
	Checkpoint *checkpoint.Checkpoint
	Tasks      []SnapshotTask
	Interrupts []checkpoint.Interrupt
	LastEvent  uint64 // every event up to here is contained
	LogID      string
}

// SnapshotTask is one task of a snapshot.
type SnapshotTask struct {
	ID          string
	Node        string
	Namespace   string
	IsSent      bool   // a Send made it
	SendIndex   int    // position of that Send in the superstep
	HandledTask string // whose failure it handles; "" = it is no error handler
	Failure     *checkpoint.Failure
	Interrupts  []checkpoint.Interrupt
	Result      payload.JSON // "" = no result yet
	State       *Snapshot    // of the subgraph, when asked for
}

// UpdateStateRequest writes to a state as if a node had done it.
type UpdateStateRequest struct {
	Thread              string
	Checkpoint          string // "" = newest
	Namespace           string
	Values              payload.JSON
	AsNode              string // "" = the node that ran last, if that is unambiguous
	Expected            string
	SupersedeInterrupts bool // open interrupts may be dropped
	RequestID           string
	Digest              string
	By                  Actor
	Memory              *CallMemory // of the call that shows the new state; nil = none
}

// RunSettings are the settings of a run beside its input. Settings of a resume
// replace all settings of the run.
type RunSettings struct {
	Context         payload.JSON
	InterruptBefore []string
	InterruptAfter  []string
	StepLimit       int // 0 = the graph's, or the server's
}

// ApplyTo writes the settings into a run.
func (s *RunSettings) ApplyTo(r *checkpoint.RunRequest) {
	r.Context, r.StepLimit = s.Context, s.StepLimit
	r.InterruptBefore, r.InterruptAfter = s.InterruptBefore, s.InterruptAfter
}

// Names that UpdateState takes for as_node besides the graph's nodes.
const (
	AsInput    = "__input__"     // the values are an input
	AsNewInput = "__new_input__" // the same, and all due tasks are dropped
	AsCopy     = "__copy__"      // a sibling with the same content
	AsEnd      = graph.End       // without values: all due tasks are dropped
)

// StateWrite is one write in the name of a node.
type StateWrite struct {
	Values payload.JSON // "" = nothing
	AsNode string       // "" = the node that ran last, if that is unambiguous
	Task   string       // the due task in whose name it is, "" = the node's next
	Goto   []checkpoint.Send
}

// BulkUpdateStateRequest writes several supersteps to a state, each with the
// writes of one or more nodes.
type BulkUpdateStateRequest struct {
	Thread              string
	Checkpoint          string // "" = newest
	Namespace           string
	Supersteps          [][]StateWrite
	Expected            string
	SupersedeInterrupts bool // open interrupts may be dropped
	RequestID           string
	Digest              string
	By                  Actor
	Memory              *CallMemory // of the call that shows the new state; nil = none
}

// IsEmpty reports whether the node wrote nothing.
func (w *StateWrite) IsEmpty() bool {
	return (w.Values == "" || w.Values == payload.Null) && len(w.Goto) == 0
}
