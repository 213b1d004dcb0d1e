package checkpoint

// Signals is what a store has besides when several processes write to it: each
// is told at once what the others do. Any signal may be lost; the log is the
// truth, and who relies on it looks there from time to time.
type Signals interface {
	// Tune begins to listen. hear is called with what is told through other
	// stores of threads that are followed, in the order in which it was told of
	// a thread. It must not block.
	Tune(hear func(Signal)) Tuner
}

// Tuner listens for one process. Its methods don't wait for the store.
type Tuner interface {
	// Follow begins to listen for a thread, until stop is called. Of AllThreads
	// only SignalLook is heard, when a question of any of them has changed.
	Follow(thread string) (stop func())
	// Tell tells those who follow the thread elsewhere of an ephemeral event.
	// They hear of it before they hear of a change that is applied later. It
	// does nothing when nobody follows.
	Tell(thread string, e Event)
	// Hush says that this process does not tell of the thread any more.
	Hush(thread string)
	// Wake tells a process that a thread wants its attention: the one that is
	// named in Head.Owner, or with owner "" every process, because the thread is
	// free and due.
	Wake(owner, thread string)
	// Close stops listening.
	Close()
}

// AllThreads stands for all threads where a single one is named otherwise.
const AllThreads = ""

// SignalKind says what a signal tells.
type SignalKind string

// Kinds of signals.
const (
	SignalTuned   SignalKind = "tuned"   // from now on this thread is heard; what was before is in the log
	SignalDeaf    SignalKind = "deaf"    // it is not heard any more, until the next SignalTuned
	SignalEvents  SignalKind = "events"  // durable events in the order of the log, or ephemeral ones
	SignalLook    SignalKind = "look"    // the log has something new
	SignalGap     SignalKind = "gap"     // ephemeral events were lost
	SignalDeleted SignalKind = "deleted" // the thread was deleted
	SignalWake    SignalKind = "wake"    // whoever Owner names, "" = everybody, should look at the thread
)

// Signal is news of a thread.
type Signal struct {
	Thread string
	Kind   SignalKind
	Owner  string // of SignalWake
	// Events of SignalEvents are all durable or all ephemeral, at least one,
	// and belong to whoever hears of them.
	Events []Event
}
