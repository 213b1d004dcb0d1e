package checkpoint

// Notifier is an optional part of a store that several processes write to: it
// sends each process a signal when another process changes a thread. Signals are
// best effort; subscribers must also poll the log.
type Notifier interface {
	// Subscribe opens a subscription. handleSignal is called with every signal of a
	// followed thread that another process sends, in the order of the
	// thread. It must not block.
	Subscribe(handleSignal func(Signal)) Subscription
}

// Subscription receives and sends the signals of a process. Its methods do not
// wait for the store.
type Subscription interface {
	// Follow delivers the signals of a thread until stop is called.
	// AllThreads delivers SignalRefresh alone, when an interrupt of any
	// thread changes.
	Follow(thread string) (stop func())
	// PublishEphemeral sends an ephemeral event to the followers of the
	// thread in other processes. It arrives before the signal of any change
	// that is applied later. Without followers it does nothing.
	PublishEphemeral(thread string, e Event)
	// StopPublishing drops the publisher of a thread that this process no
	// longer drives.
	StopPublishing(thread string)
	// WakeServers asks the process named in Head.Owner to look at a thread;
	// an empty owner asks every process, because the thread is free and
	// due.
	WakeServers(owner, thread string)
	// Close stops listening.
	Close()
}

// AllThreads stands for all threads in the place of a thread's name.
const AllThreads = ""

// SignalKind is the kind of a signal.
type SignalKind string

// Kinds of signals.
const (
	SignalConnected    SignalKind = "tuned"   // signals of the thread arrive from now on; earlier events are in the log
	SignalDisconnected SignalKind = "deaf"    // no signals arrive until the next SignalConnected
	SignalEvents       SignalKind = "events"  // durable events in the order of the log, or ephemeral events
	SignalRefresh      SignalKind = "look"    // the log has something new
	SignalGap          SignalKind = "gap"     // ephemeral events were lost
	SignalDeleted      SignalKind = "deleted" // the thread was deleted
	SignalWake         SignalKind = "wake"    // the process that Owner names, "" = every process, should look at the thread
)

// Signal reports a change of a thread.
type Signal struct {
	Thread string
	Kind   SignalKind
	Owner  string // of SignalWake
	// Missing is how many events SignalGap reports, 0 = that is not known.
	Missing uint64
	// Events of SignalEvents are all durable or all ephemeral, never empty, and
	// belong to the receiver.
	Events []Event
}
