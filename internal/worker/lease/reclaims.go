package lease

import (
	"iter"
	"maps"
	"time"
)

// Reclaimed is a lease under which a worker still runs a task, and which it got
// from an earlier server, or for a run that this server has lost. It is kept
// until this server drives the run and the run requests the task. S is the
// session of a worker.
type Reclaimed[S any] struct {
	Lease
	session      *S
	waitingCalls int  // that wait for its run
	isUnclaimed  bool // no run has asked for the task in time, and another server may know it
	timer        *time.Timer
	end          time.Time // of the wait, once it has been extended
	decided      chan struct{}
}

// Session returns the stream of the worker, nil without a stream here.
func (r *Reclaimed[S]) Session() *S { return r.session }

// HasWorker reports whether the worker has a stream or a call here.
func (r *Reclaimed[S]) HasWorker() bool { return r.session != nil || r.waitingCalls > 0 }

// Decided returns a channel that is closed when the run has requested the
// task, or has not done so in time.
func (r *Reclaimed[S]) Decided() <-chan struct{} { return r.decided }

// IsUnclaimed reports whether no run has asked for the task in time, while another
// server may know it.
func (r *Reclaimed[S]) IsUnclaimed() bool { return r.isUnclaimed }

// extendWait lets the wait go on for timeout from now.
func (r *Reclaimed[S]) extendWait(timeout time.Duration) {
	r.end = time.Now().Add(timeout)
	r.timer.Reset(timeout)
}

// isExtended reports whether the wait was extended after its timer had fired: the timer
// fires again.
func (r *Reclaimed[S]) isExtended() bool { return time.Now().Before(r.end) }

// Reclaims keeps reclaimed leases, one for each place.
type Reclaims[S any] struct {
	history    *History
	startTimer func(*Reclaimed[S]) *time.Timer
	onChange   func()
	byPlace    map[string]*Reclaimed[S]
	bySession  map[*S]map[*Reclaimed[S]]struct{}
}

// NewReclaims makes an empty set. startTimer starts the timer that ends the
// wait of a lease. onChange is called for every change that other servers must
// know.
func NewReclaims[S any](history *History, startTimer func(*Reclaimed[S]) *time.Timer, onChange func()) *Reclaims[S] {
	return &Reclaims[S]{
		history: history, startTimer: startTimer, onChange: onChange,
		byPlace: make(map[string]*Reclaimed[S]), bySession: make(map[*S]map[*Reclaimed[S]]struct{}),
	}
}

// FindPlace returns the lease of a place, nil without one.
func (r *Reclaims[S]) FindPlace(place string) *Reclaimed[S] { return r.byPlace[place] }

// All iterates over the leases.
func (r *Reclaims[S]) All() iter.Seq[*Reclaimed[S]] { return maps.Values(r.byPlace) }

// CountOf returns the number of leases that the worker of a session has
// brought.
func (r *Reclaims[S]) CountOf(s *S) int { return len(r.bySession[s]) }

// Add keeps a lease until its run requests the task here. s is nil when the worker
// has no stream here.
func (r *Reclaims[S]) Add(s *S, l Lease) {
	held := &Reclaimed[S]{Lease: l, decided: make(chan struct{})}
	held.timer = r.startTimer(held)
	r.byPlace[l.Place()] = held
	r.setSession(held, s)
	r.onChange()
}

// Claim decides between a new claim and the kept lease of a place: the newer lease
// wins. It reports whether the claimed lease is kept now.
func (r *Reclaims[S]) Claim(known *Reclaimed[S], s *S, l Lease, timeout time.Duration) bool {
	if known.Token == l.Token {
		if s != nil && known.session != s {
			r.setSession(known, s)
			known.extendWait(timeout)
			r.onChange()
		}
		return true
	}
	if !l.IsNewer(known.Lease) {
		return false
	}
	r.Reject(known)
	r.Add(s, l)
	return true
}

// Reject ends the waiting for a run: the lease is lost.
func (r *Reclaims[S]) Reject(held *Reclaimed[S]) {
	r.Remove(held)
	r.history.AddRejected(held.Token)
}

// RejectOf rejects all leases that the worker of a session has brought.
func (r *Reclaims[S]) RejectOf(s *S) {
	for held := range r.bySession[s] {
		r.Reject(held)
	}
}

// Remove ends the waiting for a run.
func (r *Reclaims[S]) Remove(held *Reclaimed[S]) {
	delete(r.byPlace, held.Place())
	held.timer.Stop()
	r.setSession(held, nil)
	close(held.decided)
	r.onChange()
}

// Expire removes a lease whose task no run has requested in time, unless another
// server awaits its worker, because the run is then about to come. The lease of a
// worker whose stream is at another server may still be valid.
func (r *Reclaims[S]) Expire(held *Reclaimed[S], isAwaited func(place string) bool, timeout time.Duration) {
	place := held.Place()
	if r.byPlace[place] != held || held.isExtended() {
		return
	}
	switch {
	case !held.HasWorker():
		r.Remove(held)
	case isAwaited(place):
		held.extendWait(timeout)
	case held.session == nil:
		held.isUnclaimed = true
		r.Remove(held)
	default:
		r.Reject(held)
	}
}

// Detach records that the stream of a session has ended. Its leases are kept for
// timeout.
func (r *Reclaims[S]) Detach(s *S, timeout time.Duration) {
	if len(r.bySession[s]) > 0 {
		r.onChange()
	}
	for held := range r.bySession[s] {
		r.setSession(held, nil)
		held.extendWait(timeout)
	}
}

// AddWaitingCalls counts the calls that wait for the run of a lease.
func (r *Reclaims[S]) AddWaitingCalls(held *Reclaimed[S], by int) {
	was := held.HasWorker()
	held.waitingCalls += by
	if held.HasWorker() != was {
		r.onChange()
	}
}

// StopTimers stops all waiting: the server ends.
func (r *Reclaims[S]) StopTimers() {
	for _, held := range r.byPlace {
		held.timer.Stop()
	}
}

// setSession records which session has the worker of a lease.
func (r *Reclaims[S]) setSession(held *Reclaimed[S], s *S) {
	if old := held.session; old != nil {
		delete(r.bySession[old], held)
		if len(r.bySession[old]) == 0 {
			delete(r.bySession, old)
		}
	}
	held.session = s
	if s == nil {
		return
	}
	if r.bySession[s] == nil {
		r.bySession[s] = make(map[*Reclaimed[S]]struct{}, 1)
	}
	r.bySession[s][held] = struct{}{}
}
