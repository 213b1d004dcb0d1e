package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Change is the effect of an operation on a thread. A store must apply all of it
// or none of it. DropAfter and ClearTasks come first, the additions follow. A
// change with DropBefore adds no checkpoints.
//
// The caller may reuse a Change and its slices afterwards, save Events, which are
// given away. The checkpoints, maps, pointers and slices inside its elements are
// shared from then on and must not be changed; the same holds for the results of
// a store.
type Change struct {
	Thread string
	// Expect is the revision of the Head the change was computed from; 0 means
	// that the thread must not exist.
	Expect uint64
	// LogID, when set, is that of the Head the change was computed from: the
	// revisions of a thread that was deleted and made again begin anew. A
	// thread with another LogID is a conflict.
	LogID string
	// Op names the attempt. A store that has already applied Op as the newest
	// change of the thread must return the receipt of then and change nothing,
	// for any Expect. A deleted thread remembers no Op. "" names nothing and is
	// never matched.
	Op string
	// Head replaces the thread's head.
	Head Head
	// Lease, when positive, makes Head.Owner's lease end this much after the
	// store's present, or up to a sixteenth of it later: a store need not write
	// the end anew with every change. Zero leaves the end as it is; when
	// Head.Owner is empty there is no lease.
	Lease time.Duration

	Checkpoints []*Checkpoint // added, in order of Seq
	Tasks       []Task        // inserted or replaced by (Checkpoint, ID)
	Memos       []Memo        // the first of a (Task, Scope, Key, Index) stays
	// ClearTasks names checkpoints whose task records and memos are used up.
	ClearTasks []string
	// Interrupts are inserted or replaced by ID. The store sets Change to a
	// number that grows over all threads, in the order in which interrupts become
	// visible, and Revision to 1, or to the old Revision + 1.
	Interrupts []Interrupt
	// Runs are inserted or replaced by ID; the store sets Revision likewise.
	Runs    []Run
	Events  []Event  // appended; their Seq continue the log
	Request *Request // remembered for idempotence; replaces a request of the same ID
	// IsCopy says that the checkpoints come from another thread: the store
	// writes each of their values and list elements once.
	IsCopy bool
	// DropAfter, when set, removes every checkpoint with a greater Seq, its
	// values, list elements, task records and memos: the rollback of a run.
	DropAfter *uint64
	// DropBefore, when set, removes every checkpoint with a smaller Seq, its task
	// records and memos, and the values and list elements that no checkpoint
	// shows any more: the history then ends there. The checkpoints of Spare stay,
	// and the newest of the root and of each namespace that has no task ids: the
	// state of a persistent subgraph.
	DropBefore      uint64
	KeepCheckpoints []string // ids of checkpoints
	// TrimEvents, when set, removes events with a smaller Seq.
	TrimEvents uint64
	// Delete removes the thread and all that belongs to it; the other fields
	// but Thread, Expect, LogID and Op are ignored.
	Delete bool
}

// Request remembers a client's request id, so that a repeated call finds the
// effect of the first call.
type Request struct {
	ID      string
	Digest  string // of the request's content
	Run     string
	Event   uint64 // last event of the thread before the request took effect
	Created time.Time
}

// Receipt acknowledges a change that is durable. Revision is Expect+1;
// LeaseExpires is zero without a lease.
type Receipt struct {
	Revision     uint64
	LeaseExpires time.Time
	Now          time.Time
	// Runs are the revisions of Change.Runs, in their order. Nil when the store
	// does not say, as of a change that it knew by its Op.
	Runs []uint64
}

// Pending is the partial progress of the superstep after a checkpoint.
type Pending struct {
	Tasks      []Task      // sorted by ID
	Memos      []Memo      // sorted by Task, Scope, Key, Index
	Interrupts []Interrupt // interrupts whose Checkpoint it is, in any state, in the order of their first put
}

// Writer reads and changes the head of a thread.
type Writer interface {
	// Head returns the thread's head. It must return ErrThreadNotFound when
	// there is no such thread, and may return Now with it. With ErrCorrupt it
	// may return Thread and Revision, by which the thread can be deleted.
	Head(ctx context.Context, thread string) (Head, error)
	// Apply makes one change, durable on return. It must return ErrConflict
	// and change nothing when the head is not at Expect or not of LogID, and ErrInvalid when
	// the change contradicts itself or its numbers do not continue the thread.
	// When ctx ends first the error wraps ErrUnavailable and ctx.Err(), and
	// the change may still be applied.
	Apply(ctx context.Context, c *Change) (Receipt, error)
}

// History reads checkpoints and the progress after them.
type History interface {
	// Checkpoint returns a checkpoint of a namespace; with an empty id the
	// newest. It must return ErrCheckpointNotFound when there is none, also when
	// there is no such thread.
	Checkpoint(ctx context.Context, thread, namespace, id string) (*Checkpoint, error)
	// Checkpoints lists a namespace, newest first; none for an unknown thread. A
	// list with a limit must end early, see ReadBytes.
	Checkpoints(ctx context.Context, q CheckpointQuery) ([]*Checkpoint, error)
	// Pending returns the progress after a checkpoint, empty when there is none.
	Pending(ctx context.Context, thread, checkpoint string) (Pending, error)
}

// BoundedReader is a store that finds out that a checkpoint, or the progress after it,
// is large before it holds all of it.
type BoundedReader interface {
	// CheckpointWithin returns a checkpoint as Checkpoint does; for a checkpoint
	// whose Size is greater than most it must return a *LargeError, and hold about
	// most bytes of it at a time.
	CheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*Checkpoint, error)
	// PendingWithin returns progress as Pending does; for progress whose Size is
	// greater than most it must return a *LargeError whose Bytes are greater than
	// most, and hold about most bytes of it at a time.
	PendingWithin(ctx context.Context, thread, checkpoint string, most int) (Pending, error)
}

// CheckpointQuery selects checkpoints of a namespace.
type CheckpointQuery struct {
	Thread    string
	Namespace string
	Before    uint64 // only smaller Seq; 0 = all
	Limit     int    // 0 = all
	// AllNamespaces asks for all namespaces; Namespace does not matter then.
	AllNamespaces bool
	// AnyTask matches namespaces by node names alone, for any task ids: "a|b" and
	// "a:1|b:2" both find "a:3|b:4".
	AnyTask bool
}

// Log reads the event log of a thread.
type Log interface {
	// Events returns at most limit events with Seq > after, oldest first, and
	// fewer when they are large, see ReadBytes; a limit of 0 means all. It must return ErrTrimmed when events after that
	// number are gone, and ErrThreadNotFound when there is no such thread.
	Events(ctx context.Context, thread string, after uint64, limit int) ([]Event, error)
}

// Records reads runs, interrupts and remembered requests.
type Records interface {
	// Run must return ErrRunNotFound when the thread has no such run.
	Run(ctx context.Context, thread, run string) (Run, error)
	// Runs lists a thread's runs, newest first, of Order smaller than before; a
	// before or limit of 0 means all. A list with a limit must end early, see
	// ReadBytes.
	Runs(ctx context.Context, thread string, before uint64, limit int) ([]Run, error)
	// Interrupt must return ErrInterruptNotFound when there is no such interrupt.
	Interrupt(ctx context.Context, thread, id string) (Interrupt, error)
	// Request must return ErrRequestNotFound when the id was not used.
	Request(ctx context.Context, thread, id string) (Request, error)
}

// Index searches over all threads. Lists with a limit must end early, see
// ReadBytes.
//
// A query with a Tenant must find exactly what tenant.Contains says of the Thread, and its
// cost must not grow with the threads and interrupts of other tenants, nor with their
// changes. A query without a Tenant is for operators: it may cost more with each tenant.
type Index interface {
	// Threads lists heads by update time, or with conditions by creation time, newest first,
	// then by Thread. With one condition a list must not cost more with each thread that it
	// does not select. A record that can't be read is left out; reading it by name tells why.
	Threads(ctx context.Context, q ThreadQuery) ([]Head, error)
	// Interrupts lists interrupts by Created, oldest first, then by Thread and
	// ID; with ByDue by DueTime in place of Created, those that have one; or, with
	// ByChange, in the order of their last change. It leaves out records that can't be
	// read, as Threads does. When UsesTags, it must not look at more interrupts than have the
	// rarest of Tags, or one of AnyTag.
	Interrupts(ctx context.Context, q InterruptQuery) ([]Interrupt, error)
	// LatestChange returns a number that the Change of every interrupt has that is visible now,
	// or a smaller one, and that every later Change exceeds.
	LatestChange(ctx context.Context) (uint64, error)
	// Due lists threads whose Due or whose lease's end has passed by the store's
	// clock, longest ago first, and returns when the next thread will be due
	// (zero = none known). A limit of 0 means all.
	Due(ctx context.Context, limit int) (threads []string, next time.Time, err error)
}

// Counter counts what a tenant holds. A count must not cost more with each other tenant, and
// must not look at much more than atMost records. Records that can't be read count, too.
type Counter interface {
	// CountThreads returns how many threads a tenant has, or atMost if it has more.
	CountThreads(ctx context.Context, tenant string, atMost int) (int, error)
	// CountOpenInterrupts returns how many interrupts of a tenant are open, or atMost if
	// more are.
	CountOpenInterrupts(ctx context.Context, tenant string, atMost int) (int, error)
}

// ThreadPager passes over the threads that a query selects, in the order of Threads. Its Limit does
// not matter. It must read indexes alone, so threads whose records can't be read count, too.
type ThreadPager interface {
	// SkipThreads returns the place of the last of the first n threads, after which the others are
	// listed, and the zero place when there are fewer. n is 1 or more.
	SkipThreads(ctx context.Context, q ThreadQuery, n int) (ThreadPosition, error)
	// CountSelectedThreads returns how many threads there are, or atMost if there are more.
	CountSelectedThreads(ctx context.Context, q ThreadQuery, atMost int) (int, error)
}

// TagCounter counts open interrupts by their tags.
type TagCounter interface {
	// CountTags returns how many open interrupts of a tenant, which is named, have each of some
	// tags, OpenTag among them, in the order of the tags. It must not look at the interrupts.
	CountTags(ctx context.Context, tenant string, tags []string) ([]int, error)
}

// ThreadQuery selects threads. Zero fields select all.
type ThreadQuery struct {
	Tenant   string // of the Thread, see Index
	State    ThreadState
	Graph    string
	Metadata map[string]string // all must be equal
	// OnlyUUIDs selects threads whose ids are UUIDs, see IsUUID. It is no condition that an index
	// finds: the order is that of the other fields.
	OnlyUUIDs bool
	Before    ThreadPosition // keyset page: strictly after this position in the order
	Limit     int            // 0 = all
}

// ThreadPosition is a place in the order of Threads; zero = the start.
type ThreadPosition struct {
	Updated time.Time // in the order of last changes
	Created time.Time // in the order of creation
	Thread  string
}

// Time returns the time by which the place stands in its order.
func (p ThreadPosition) Time() time.Time {
	if !p.Created.IsZero() {
		return p.Created
	}
	return p.Updated
}

// InterruptQuery selects interrupts. Zero fields select all.
type InterruptQuery struct {
	Tenant string // of the Thread, see Index
	Thread string
	Run    string
	Node   string
	Reason string
	States []InterruptState
	Tags   []string // of properties that it has, all of them
	AnyTag []string // at least one of them
	// ByDue selects interrupts whose DueTime is set, and before DueBefore unless that
	// is zero, and orders them by it. After.Due is then the cursor in place of After.Created.
	// It is of the open interrupts of all threads: States is InterruptOpen, and Thread and
	// ByChange are not set.
	ByDue     bool
	DueBefore time.Time
	After     InterruptPosition // keyset page
	ByChange  bool              // order by Change, After.Change is the cursor
	Limit     int               // 0 = all
}

// MatchesInterrupt reports whether a query selects an interrupt, apart from Tenant, After and
// Limit.
func (q *InterruptQuery) MatchesInterrupt(in *Interrupt) bool {
	switch {
	case q.Thread != "" && q.Thread != in.Thread,
		q.Run != "" && q.Run != in.Run,
		q.Node != "" && q.Node != in.Node,
		q.Reason != "" && q.Reason != in.Reason,
		len(q.States) > 0 && !slices.Contains(q.States, in.State),
		!in.hasProperties(q.Tags, q.AnyTag):
		return false
	case !q.ByDue:
		return true
	}
	due := in.DueTime()
	return !due.IsZero() && (q.DueBefore.IsZero() || due.Before(q.DueBefore))
}

// MayHaveSelected reports whether a query that does not select an interrupt may have selected it
// before: when it was open, or had a property that it has no longer.
func (q *InterruptQuery) MayHaveSelected(in *Interrupt) bool {
	had := *q
	had.Tags, had.AnyTag, had.ByDue, had.DueBefore = nil, nil, false, time.Time{}
	if isOpen := len(q.States) == 1 && q.States[0] == InterruptOpen; isOpen {
		had.States = nil
	}
	return !q.MatchesInterrupt(in) && had.MatchesInterrupt(in) && in.hadProperties(q.Tags, q.AnyTag)
}

// UsesTags reports whether the interrupts are found by their tags.
func (q *InterruptQuery) UsesTags() bool {
	isOpen := len(q.States) == 1 && q.States[0] == InterruptOpen
	return isOpen && q.Thread == "" && !q.ByChange && (len(q.Tags) > 0 || len(q.AnyTag) > 0 || q.ByDue)
}

// PositionOf returns where an interrupt stands in the order of the query.
func (q *InterruptQuery) PositionOf(in *Interrupt) InterruptPosition {
	switch {
	case q.ByChange:
		return InterruptPosition{Change: in.Change}
	case q.ByDue:
		return InterruptPosition{Due: in.DueTime(), Thread: in.Thread, ID: in.ID}
	}
	return InterruptPosition{Created: in.Created, Thread: in.Thread, ID: in.ID}
}

// ComparePositions compares two places in the order of the query.
func (q *InterruptQuery) ComparePositions(a, b InterruptPosition) int {
	if q.ByChange {
		return cmp.Compare(a.Change, b.Change)
	}
	return cmp.Or(a.Time().Compare(b.Time()), strings.Compare(a.Thread, b.Thread), strings.Compare(a.ID, b.ID))
}

// IsAfterCursor reports whether an interrupt stands after the cursor of the query.
func (q *InterruptQuery) IsAfterCursor(in *Interrupt) bool {
	return q.After == (InterruptPosition{}) || q.ComparePositions(q.PositionOf(in), q.After) > 0
}

// InterruptPosition is a place in the order of Interrupts; zero = the start.
type InterruptPosition struct {
	Created time.Time
	Due     time.Time
	Thread  string
	ID      string
	Change  uint64
}

// Time returns the time by which the place stands in its order: Due, or else Created.
func (p InterruptPosition) Time() time.Time {
	if !p.Due.IsZero() {
		return p.Due
	}
	return p.Created
}

// Store keeps threads. Implementations must be safe for concurrent use, must
// return only the errors of this package or errors that wrap ErrUnavailable or
// ErrCorrupt, and must not keep or change their arguments.
type Store interface {
	Writer
	Reader
}

// Reader reads the records of a store, as Store says it.
type Reader interface {
	// Head is that of Writer.
	Head(ctx context.Context, thread string) (Head, error)
	History
	Log
	Records
	Index
	Counter
	ThreadPager
	TagCounter
	// Close waits for calls under way. Calls made later must fail with an error
	// that wraps ErrUnavailable.
	Close() error
}

// GraphRecord is an immutable version of a graph as it was put.
type GraphRecord struct {
	Name    string
	Version string
	Source  string    // canonical JSON of the description
	Created time.Time // by the store's clock; the last is the newest version
}

// Clock is a store that several processes share and that counts time for all
// of them. The clocks of the processes may be wrong.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}

// WriteChecker is a store that can check, without a change, whether it accepts
// changes.
type WriteChecker interface {
	// CheckWritable returns nil when the store takes changes. An error that wraps
	// ErrStoreReplaced or ErrStoreFull says that it refuses them until an operator
	// acts, and names the cause and the remedy. Any other error says that the
	// store did not answer.
	CheckWritable(ctx context.Context) error
}

// TimeBounded is a store that bounds how long a change waits, answered with
// ErrStoreBusy, and how long it takes. Callers need no timeout of their own.
type TimeBounded interface{ TimeBounded() }

// Immediate is a store whose calls wait for nothing. They need no timeout, and are not repeated.
type Immediate interface {
	TimeBounded
	Immediate()
}

// Graphs keeps graph definitions.
type Graphs interface {
	GraphWriter
	GraphReader
}

// GraphWriter changes which graphs there are.
type GraphWriter interface {
	// PutGraph must return ErrGraphExists when the version exists with another
	// Source, or has a tombstone of another Source; and nil when it exists with
	// the same Source. Else it must return ErrVersionsChanged, and change nothing,
	// when the graph does not fulfil the condition: no change of another process may
	// come in between. A version that comes back has no tombstone.
	PutGraph(ctx context.Context, g GraphRecord, condition GraphCondition) error
	// DeleteGraph removes a version. It must leave a tombstone with a digest, so
	// that only the same Source can come back: threads may still wait for it. A
	// store keeps the tombstones of the versions that were deleted last, up to a
	// number, and must forget the oldest beyond it. It must return
	// ErrGraphNotFound when there is no such version, and else ErrVersionsChanged as
	// PutGraph does.
	DeleteGraph(ctx context.Context, name, version string, condition GraphCondition) error
}

// GraphReader reads graph definitions.
type GraphReader interface {
	// GraphRecord must return ErrGraphNotFound when there is no such version.
	GraphRecord(ctx context.Context, name, version string) (GraphRecord, error)
	// GraphVersions lists every version, oldest first, then by Name and Version,
	// all without their Source. The revision must differ after each change by any
	// process; the list may be nil when known is the revision still. It is never
	// 0. It is smaller than an earlier revision only when the store has lost
	// data.
	GraphVersions(ctx context.Context, known uint64) (list []GraphRecord, revision uint64, err error)
	// GraphRecords lists every version with its Source, in the same order. It is
	// for tools: the result may be large.
	GraphRecords(ctx context.Context) ([]GraphRecord, error)
}

// DefaultTombstones is how many deleted versions of graphs a store remembers when
// no option says.
const DefaultTombstones = 10_000

// GraphDigest returns the digest that a store keeps of the Source of a deleted version.
func GraphDigest(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:])
}
