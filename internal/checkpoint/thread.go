package checkpoint

import (
	"math"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/trail"
)

// ThreadState is the state of a thread; it is derived from its active run.
type ThreadState string

// States of a thread.
const (
	ThreadIdle        ThreadState = "idle"
	ThreadBusy        ThreadState = "busy"
	ThreadInterrupted ThreadState = "interrupted"
	ThreadFailed      ThreadState = "failed"
)

// ThreadStates returns the states of threads. Each thread has one of them.
func ThreadStates() []ThreadState {
	return []ThreadState{ThreadIdle, ThreadBusy, ThreadInterrupted, ThreadFailed}
}

// KeepAll is the Head.Keep of a thread that is not pruned.
const KeepAll = -1

// Head is the small record of a thread that every change replaces. It has all
// that decides the next step, and nothing that grows.
type Head struct {
	Thread   string
	LogID    string // new when a deleted thread is made again
	Graph    string
	Version  string
	Metadata map[string]string
	Created  time.Time
	Updated  time.Time
	TTL      time.Duration // 0 = kept for ever
	Expires  time.Time     // absolute expiry; zero = Updated+TTL, or never
	Keep     int           // checkpoints to keep at rest; 0 = as the server says, KeepAll = all
	State    ThreadState

	Checkpoint string // newest checkpoint of the root graph, "" = none
	// Branched says that the thread went back to Checkpoint and has not written
	// since: later writes must not extend the lists of the other branch.
	Branched   bool
	Seq        uint64 // number of the last checkpoint of any namespace
	FirstSeq   uint64 // checkpoints with a smaller number are gone, save some; 0 = all are there
	LastEvent  uint64 // number of the last event
	FirstEvent uint64 // number of the oldest event still in the log

	Run   string   // the run that is active, waits or ended last; "" = none yet
	Queue []string // runs waiting behind it, in order
	// Later are runs that are to begin at a time, by their times. They join Queue then.
	Later []LaterRun
	// Open counts the interrupts of the thread without an answer in effect: those that wait
	// for an answer, and Retractable of them, whose answer takes effect later.
	Open        int
	Retractable int
	Answered    int // answers that took effect since the run was last resumed
	// NeedsAllAnswers is set when answers do not resume the thread before
	// every interrupt is answered.
	NeedsAllAnswers bool
	Cancel          *Cancel // a cancel request that Run has not yet applied
	// Editors are the principals that have edited the state since the run began.
	Editors []string

	Fence uint64 // raised by each lease
	Owner string // server that holds the lease, "" = none
	// PreferredOwner is the server that should take the lease next, because
	// the run needs workers that are attached to it. Until PreferredUntil
	// other servers do not take the lease.
	PreferredOwner string
	PreferredUntil time.Time
	Handoffs       int // hand-offs of the run to the servers of its workers since it last made progress
	// RemoteTasks are the tasks that workers may still run though no server drives the
	// run; AnyTask stands for all, and a task followed by Inside for those of the
	// graph that it runs. The server that takes the run up keeps them for these
	// workers.
	RemoteTasks []string
	// Due is the time at which a server should look at the thread without a
	// call: work is queued, an interrupt expires, the thread expires. Zero =
	// never. A store also treats the end of a lease as due.
	Due time.Time

	// Faults is how often in a row a server failed when it took the thread up;
	// until RetryAt all of them leave it alone.
	Faults  int
	RetryAt time.Time

	// Revision, LeaseExpires and Now are set by the store on reads. Now is the
	// store's clock: leases are compared with no other clock.
	Revision     uint64
	LeaseExpires time.Time
	Now          time.Time
}

// LaterRun is a run that is to begin at a time.
type LaterRun struct {
	Run    string
	Begins time.Time
}

// CountWaiting counts the runs that have not begun.
func (h *Head) CountWaiting() int { return len(h.Queue) + len(h.Later) }

// HasEnoughAnswers reports whether a run that waits for answers can go on.
func (h *Head) HasEnoughAnswers() bool {
	return h.Answered > 0 && (!h.NeedsAllAnswers || h.Open == 0)
}

// MayGoOn reports whether a run that waits for answers goes on without another answer, or may
// when an answer takes effect.
func (h *Head) MayGoOn() bool { return h.HasEnoughAnswers() || h.Retractable > 0 }

// AddEditor notes that a principal has edited the state.
func (h *Head) AddEditor(name string) {
	if name == "" || h.IsEditor(name) {
		return
	}
	if len(h.Editors) >= maxEditors {
		name = everybody
	}
	h.Editors = append(slices.Clone(h.Editors), name)
}

// KeepEditor forgets the editors for a run that takes the state as it is. One who starts such a
// run has edited the state for it.
func (h *Head) KeepEditor(starter string) {
	isEditor := starter != "" && h.IsEditor(starter)
	if h.Editors = nil; isEditor {
		h.Editors = []string{starter}
	}
}

// IsEditor reports whether a principal has edited the state, or may have.
func (h *Head) IsEditor(name string) bool {
	return slices.Contains(h.Editors, name) || slices.Contains(h.Editors, everybody)
}

const (
	maxEditors = 64
	everybody  = "*" // no name of a caller
)

// AnyTask in Head.RemoteTasks stands for every task of the run.
const AnyTask = "*"

// Inside follows a task of the root in Head.RemoteTasks.
const Inside = "/"

// Leased reports whether a server holds a lease that has not expired.
func (h *Head) Leased() bool { return h.Owner != "" && h.LeaseExpires.After(h.Now) }

// Cancel asks the active run to stop.
type Cancel struct {
	Run      string
	Rollback bool
	Reason   string
	Grace    time.Duration // of the nodes; DrainGrace and PauseGrace = the request is one of these
	By       string
}

// The graces of requests that leave the questions of the run, and its answers.
const (
	DrainGrace time.Duration = math.MaxInt64 // after the superstep under way
	PauseGrace time.Duration = -1            // at once
)

// KeepsQuestions reports whether the request leaves the questions of the run, and no
// stronger one has come since.
func (c *Cancel) KeepsQuestions() bool {
	return !c.Rollback && (c.Grace == DrainGrace || c.Grace == PauseGrace)
}

// IsDrain reports whether the superstep under way is to end.
func (c *Cancel) IsDrain() bool { return c.KeepsQuestions() && c.Grace == DrainGrace }

// EndState returns how a run ends that the request has stopped, with so many open
// questions.
func (c *Cancel) EndState(open int) RunState {
	if c.KeepsQuestions() && open > 0 {
		return RunInterrupted
	}
	return RunCancelled
}

// RunState is how far a run has come.
type RunState string

// States of a run.
const (
	RunQueued      RunState = "queued"
	RunRunning     RunState = "running"
	RunInterrupted RunState = "interrupted" // waits for people, never used for cancel
	RunCancelling  RunState = "cancelling"
	RunSucceeded   RunState = "succeeded"
	RunFailed      RunState = "failed"
	RunCancelled   RunState = "cancelled"
	RunTimedOut    RunState = "timed_out"
	RunSuperseded  RunState = "superseded"
)

// Terminal reports whether a run in this state can never go on.
func (s RunState) Terminal() bool {
	switch s {
	case RunSucceeded, RunFailed, RunCancelled, RunTimedOut, RunSuperseded:
		return true
	case RunQueued, RunRunning, RunInterrupted, RunCancelling:
		return false
	}
	return false
}

// Run is a pass of a graph over a thread, from an input to a stop. It goes on
// under the same id after interrupts are answered.
type Run struct {
	ID       string
	Thread   string
	Graph    string
	Version  string
	State    RunState
	Failure  *Failure
	Metadata map[string]string
	// StartedBy is the principal whose call started the run, "" = not known.
	StartedBy string
	Created   time.Time
	Updated   time.Time
	Order     uint64 // position among the thread's runs
	Deadline  time.Time
	Begins    time.Time // before it a queued run waits; zero = it begins when it is its turn

	Request RunRequest
	Base    string // root checkpoint before the run, for rollback
	MaxStep int    // step at which the limit of supersteps is reached
	Output  payload.JSON
	// Result is the root checkpoint that shows the output, in place of an Output
	// that is too large to be stored twice.
	Result string
	// FirstEvent and LastEvent bound the run's part of the event log.
	FirstEvent uint64
	LastEvent  uint64
	Revision   uint64 // changes with each update; the etag
}

// RunRequest is the client's request, which every later superstep of the run
// applies. Input never changes: a store may keep the first.
type RunRequest struct {
	Input           payload.JSON // "" = continue the thread
	From            string       // checkpoint to replay from, "" = newest
	FromNamespace   string
	Update          payload.JSON // Command.update
	Goto            []Send       // Command.goto
	Context         payload.JSON
	InterruptBefore []string
	InterruptAfter  []string
	StepLimit       int
	Timeout         time.Duration
	Delay           time.Duration // the run begins so long after it was started, 0 = at once
	Expected        string        // checkpoint the thread must be at, "" = any
	DiscardOpen     bool          // open interrupts are superseded when the run starts
	OnDisconnect    string        // "" = continue, "cancel"
}

// Send addresses a node, with an input of its own when Input is set.
type Send struct {
	Node  string
	Input payload.JSON
}

// InterruptState is how far an interrupt has come.
type InterruptState string

// States of an interrupt.
const (
	InterruptOpen        InterruptState = "open"
	InterruptRetractable InterruptState = "retractable" // answered; the answer takes effect at Effective
	InterruptAnswered    InterruptState = "answered"    // the answer is in effect, not yet used
	InterruptConsumed    InterruptState = "consumed"    // used by the commit that followed
	InterruptExpired     InterruptState = "expired"
	InterruptCancelled   InterruptState = "cancelled"
	InterruptSuperseded  InterruptState = "superseded"
)

// Interrupt is a request to a person, with its answer once it is there.
type Interrupt struct {
	ID         string
	Thread     string
	Run        string
	Graph      string
	Namespace  string
	Checkpoint string // of Namespace
	Node       string
	Task       string // "" for a breakpoint
	Scope      string
	Key        string
	Index      int
	Reason     string
	Message    string
	Value      payload.JSON
	Schema     payload.JSON

	State     InterruptState
	Created   time.Time
	Updated   time.Time
	Expires   time.Time // zero = never
	Expiry    ExpiryAction
	Default   payload.JSON
	Assignees []string
	// Change is the store's number of the last change of any interrupt; the
	// cursor of clients that watch interrupts. Set by the store.
	Change   uint64
	Revision uint64

	Response  payload.JSON // "" = none; a dismissed interrupt has none
	Dismissed bool
	// NeedsAllAnswers is Head.NeedsAllAnswers from the effect of the answer on.
	NeedsAllAnswers bool
	Priority        approval.Priority // beside the flags, which takes the fewest bytes
	Note            string            // the answerer's remark, or the reason of a dismissal
	// Responder is the principal that answered, "" = not known, or no answer. The
	// three fields after it are empty without it.
	Responder      string
	ResponderHow   string    // kind of the credential that identified the responder
	ResponseMethod string    // method by which the answer came
	ResponseTime   time.Time // Updated is later than that once the answer is used
	Request        string    // id of the request that answered
	// Undo is how long an answer can be taken back; it takes effect after that. Effective is
	// when an answer takes effect, or has taken effect, zero = at once.
	Undo      time.Duration
	Effective time.Time

	// ShownDigest is the digest of the message, value and schema that are shown.
	ShownDigest string
	Drift       Drift    // applies when a replay asks something else
	DriftIgnore []string // parts that may differ: JSON pointers into the value, or "message", "schema", "value"
	Round       int      // how often the place was asked anew, because a replay asked something else
	Replaces    string   // the interrupt whose answer was not used here, "" = none
	Differs     []string // differences from that interrupt
	// Accepted is the differences of the question for which the node used the
	// answer all the same.
	Accepted []string

	// Policy says who may answer and how many must, nil = everybody, and one.
	Policy *approval.Policy
	// Votes are those cast so far, in their order, the deciding vote among them. Without a
	// Policy there are none.
	Votes []approval.Vote

	// Steps happen while the question is undecided, in order; NextStep is the number of the next one.
	Steps    []approval.Step
	NextStep int

	// Changes is nil for an interrupt of which no property has changed. Copies of the interrupt
	// share it: PropertyChanges and SetPropertyChanges read and replace it.
	Changes *PropertyChanges

	// Secret are JSON pointers to the parts of Value, Default and of answers that not everybody
	// sees. Those fields have redact.Marker there, and Hidden has the parts.
	Secret []string
	Hidden Hidden

	// ClaimedBy is the principal that has claimed the interrupt, "" = none. A claim ends at
	// ClaimExpires by itself.
	ClaimedBy    string
	ClaimExpires time.Time

	// Trail is what happened to the interrupt. An interrupt without a Policy to which nothing
	// happened but its answer keeps none: FullTrail makes it of the record.
	Trail trail.Log
}

// PropertyChanges is what became of the properties that an interrupt was asked with. It lies
// apart from the interrupt, because few interrupts have it.
type PropertyChanges struct {
	// AddedUsers and AddedGroups are those to whom the interrupt was escalated.
	AddedUsers  []string
	AddedGroups []string
	// Delegations are those who answer in the place of others.
	Delegations []approval.Delegation
	// Former are the tags of properties that the interrupt has had and has no longer, but those
	// of claims, the newest first.
	Former []string
}

// PropertyChanges returns a copy of the changes, without any when there are none.
func (i *Interrupt) PropertyChanges() PropertyChanges {
	if i.Changes == nil {
		return PropertyChanges{}
	}
	return *i.Changes
}

// SetPropertyChanges replaces the changes of this copy of the interrupt.
func (i *Interrupt) SetPropertyChanges(c PropertyChanges) {
	i.Changes = nil
	if len(c.AddedUsers)+len(c.AddedGroups)+len(c.Delegations)+len(c.Former) > 0 {
		i.Changes = &c
	}
}

// Hidden are the secret parts of an interrupt. Those of votes are in the votes. Events have none.
type Hidden struct {
	Value    redact.Parts
	Default  redact.Parts
	Response redact.Parts
}

// IsWaiting reports whether the interrupt has no answer in effect, and may get one.
func (i *Interrupt) IsWaiting() bool {
	return i.State == InterruptOpen || i.State == InterruptRetractable
}

// ClientState returns the state that clients see: they tell a retractable answer by its time.
func (i *Interrupt) ClientState() InterruptState {
	if i.State == InterruptRetractable {
		return InterruptAnswered
	}
	return i.State
}

// WaitingStates returns the states of interrupts that are waiting.
func WaitingStates() []InterruptState {
	return []InterruptState{InterruptOpen, InterruptRetractable}
}

// DigestShown returns the digest of what the interrupt shows. It computes the digest for
// records of earlier versions, which have none.
func (i *Interrupt) DigestShown() string {
	if i.ShownDigest != "" {
		return i.ShownDigest
	}
	return payload.ShownDigest(payload.ShownParts(i.Message, i.Value, i.Schema, i.DriftIgnore))
}

// ReasonBreakpoint marks a static breakpoint: nothing is asked and no answer
// is due.
const ReasonBreakpoint = "breakpoint"

// Drift is the reaction to a replayed node that asks something else than was
// answered.
type Drift string

// Reactions to drift.
const (
	DriftDefault  Drift = "" // as the graph says, or else as the reason of the interrupt demands
	DriftFail     Drift = "fail"
	DriftAskAgain Drift = "ask_again"
	DriftAccept   Drift = "accept"
)

// ExpiryAction is the reaction to an interrupt that expires without an answer.
type ExpiryAction string

// Reactions to an expired interrupt.
const (
	ExpiryNone          ExpiryAction = ""
	ExpiryFailNode      ExpiryAction = "fail_node"
	ExpiryResumeDefault ExpiryAction = "resume_default"
	ExpiryCancelRun     ExpiryAction = "cancel_run"
)
