package ownership

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// FindOtherServer names the server that has the workers for the next tasks of a loop,
// when this server has none for any of them; "" = this server has, or none has.
func (o *Owner) FindOtherServer(thread string, l *superstep.Loop) string {
	if o.opts.Peers == nil || len(o.opts.Peers.OtherMembers()) == 0 {
		return ""
	}
	tasks, ok := l.NextRemoteTasks()
	if !ok {
		return ""
	}
	needs := make([][]checkpoint.Capability, len(tasks))
	for i, need := range tasks {
		if o.opts.Peers.CoversHere(need) {
			return ""
		}
		needs[i] = tasks[i : i+1]
	}
	return o.opts.Peers.ChooseServer(thread, needs)
}

// PutHandOff hands a thread off to a server in a change. If that server does not
// take it, any server may after the time of a lease.
func (o *Owner) PutHandOff(t *commit.Tx, server string) { putHandOff(t, server, &o.opts) }

func putHandOff(t *commit.Tx, server string, opts *Options) {
	t.Lease = 0
	t.Head.Owner, t.Head.PreferredOwner, t.Head.PreferredUntil = "", server, t.Now.Add(opts.LeaseTTL)
	t.Head.Handoffs++
	t.Head.Due = t.Now.Add(opts.ScanInterval) // it is notified, and its scan finds the thread otherwise
}

// acceptHandOff takes a thread that was handed off to this server, even if this
// server is still releasing it.
func (o *Owner) acceptHandOff(thread string) {
	if o.opts.Peers == nil {
		return
	}
	o.opts.Threads.runForThread(thread, func(old *session) {
		if old != nil && old.commits.waitFirstCommit(o.runCtx) != nil || o.opts.Threads.IsLive(thread) {
			return
		}
		select {
		case o.handOffSlots <- struct{}{}:
			defer func() { <-o.handOffSlots }()
			o.opts.Scheduler.ProcessThread(o.runCtx, thread)
		case <-o.opts.Threads.draining:
		}
	}, contain.LogPanic(o.log, "taking a thread panicked"))
}

// handOffDelay returns how long a run stays after a number of fruitless hand-offs:
// changing workers must not move it all the time.
func handOffDelay(moves int, lease time.Duration) time.Duration {
	const free = 3
	if moves < free {
		return 0
	}
	return min(100*time.Millisecond<<min(moves-free, 16), lease)
}
