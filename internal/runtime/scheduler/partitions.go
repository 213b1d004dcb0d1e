package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/sweep"
)

// The servers of a store share the looks at its partitions, as package sweep says. What this
// server leaves due it knows without a look, and another server may be the first that looks for
// it: so this server processes it.

// maxNoted is the number of threads that a process knows to be due soon. Others are found by looks.
const maxNoted = 4096

// wakeRanks is the number of servers of a partition that process a thread that another server has
// no capacity for.
const wakeRanks = 2

// partitionLooks are the looks of this server, and the threads that it knows to be due.
type partitionLooks struct {
	opts   *Options
	probes sync.WaitGroup // of partitions that did not answer

	mu           sync.Mutex
	planner      *sweep.Planner
	isLookWanted bool
	isProbing    bool
	noted        map[string]time.Duration // uptime at which a thread is due
}

func newPartitionLooks(o *Options) *partitionLooks {
	l := &partitionLooks{
		opts: o, planner: sweep.NewPlanner(o.Server, o.Partitions.PartitionCount(), o.ScanInterval), noted: make(map[string]time.Duration),
	}
	if o.AwaitsServers {
		l.planner.AwaitOthers(o.Uptime())
	}
	return l
}

// SetOtherServers sets the names of the other servers that share the store.
func (s *Scheduler) SetOtherServers(names []string) {
	if s.looks == nil {
		return
	}
	s.looks.mu.Lock()
	s.looks.planner.SetOthers(names, s.opts.Uptime())
	s.looks.mu.Unlock()
	s.wakeUp()
}

// NoteDue notes when a thread is due that this server leaves to itself. It may be processed
// then without a look.
func (s *Scheduler) NoteDue(thread string, wait time.Duration) {
	if s.looks != nil && s.looks.note(thread, wait) {
		s.wakeUp()
	}
}

// ForgetDue forgets that a thread is due soon.
func (s *Scheduler) ForgetDue(thread string) {
	if s.looks == nil {
		return
	}
	s.looks.mu.Lock()
	defer s.looks.mu.Unlock()
	delete(s.looks.noted, thread)
}

// WakeForThread has a thread processed that another server has no capacity for, if this server
// is among the first that look for it. It does not block.
func (s *Scheduler) WakeForThread(thread string) {
	if s.looks == nil {
		s.Wake()
		return
	}
	s.looks.mu.Lock()
	isOurs := s.looks.planner.Rank(s.opts.Partitions.PartitionOf(thread)) < wakeRanks
	if isOurs && len(s.looks.noted) < maxNoted {
		s.looks.noted[thread] = s.opts.Uptime()
	}
	s.looks.mu.Unlock()
	if isOurs {
		s.wakeUp()
	}
}

// lookNow has the looks made at once in which this server is the first.
func (l *partitionLooks) lookNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isLookWanted = true
}

// note notes a thread that is due soon, and reports whether it did. Looks find the threads of a
// server that knows no other.
func (l *partitionLooks) note(thread string, wait time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait > 2*l.opts.ScanInterval || l.planner.CountOthers() == 0 || len(l.noted) >= maxNoted {
		delete(l.noted, thread)
		return false
	}
	l.noted[thread] = l.opts.Uptime() + max(0, wait)
	return true
}

// takeNoted takes the noted threads that are due, in the order in which they became due.
func (l *partitionLooks) takeNoted(now time.Duration) (threads []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for thread, at := range l.noted {
		if at <= now {
			threads = append(threads, thread)
		}
	}
	slices.SortFunc(threads, func(a, b string) int { return int(l.noted[a] - l.noted[b]) })
	for _, thread := range threads {
		delete(l.noted, thread)
	}
	return threads
}

// takeLooks takes the looks that are due: those at partitions that answered the last look, and
// the others, unless a look at such is under way.
func (l *partitionLooks) takeLooks(now time.Duration, isFull bool) (looks, probes []checkpoint.DueLook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isLookWanted {
		l.isLookWanted = false
		l.planner.LookNow(now)
	}
	for _, look := range l.planner.TakeLooks(now, isFull) {
		to := checkpoint.DueLook{Partition: look.Partition, Skip: look.Skip, Limit: look.Limit}
		switch {
		case !l.planner.HasFailed(look.Partition):
			looks = append(looks, to)
		case !l.isProbing:
			probes = append(probes, to)
		}
	}
	l.isProbing = l.isProbing || len(probes) > 0
	return looks, probes
}

// noteFound plans the next looks after some, which found something.
func (l *partitionLooks) noteFound(looks []checkpoint.DueLook, found []checkpoint.DueThreads, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, look := range looks {
		f := &found[i]
		l.planner.NoteFound(sweep.Found{
			Partition: look.Partition, Skip: look.Skip, Due: f.Count, Taken: len(f.Threads), Late: f.Late, Next: f.Next, Failed: f.Err != nil,
		}, now)
	}
}

// next returns when there is something to do.
func (l *partitionLooks) next() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.planner.Next()
	for _, at := range l.noted {
		next = min(next, at)
	}
	return next
}

// processPartitions processes the threads that this server knows to be due, and those that it
// finds by looks. It returns the time until the next look.
func (s *Scheduler) processPartitions(ctx context.Context) time.Duration {
	threads := s.looks.takeNoted(s.opts.Uptime())
	isFull := !s.opts.Granter.HasFreeSlot()
	looks, probes := s.looks.takeLooks(s.opts.Uptime(), isFull)
	if len(probes) > 0 {
		s.looks.probes.Go(contain.Func(func() { s.probe(ctx, probes) }, contain.LogPanic(s.log, "looking for due work panicked")))
	}
	if len(looks) > 0 {
		found := s.lookForDue(ctx, looks)
		threads = append(threads, slices.DeleteFunc(found, func(t string) bool { return slices.Contains(threads, t) })...)
	}
	s.processDue(ctx, threads)
	if isFull || !s.opts.Granter.HasFreeSlot() {
		return s.opts.ScanInterval
	}
	return s.looks.next() - s.opts.Uptime()
}

// lookForDue makes looks, and returns the due threads that are neither quarantined nor queued. If
// such threads take nearly all of what it finds, it reads on, twice as many at a time.
func (s *Scheduler) lookForDue(ctx context.Context, looks []checkpoint.DueLook) (threads []string) {
	began := s.opts.Uptime()
	most := dueBatch + s.countQuarantined() + s.opts.Queue.CountQueued()
	for isFirst := true; ; isFirst = false {
		found := s.makeLooksInTime(ctx, looks)
		if ctx.Err() != nil {
			return threads
		}
		s.looks.noteFound(looks, found, s.opts.Uptime())
		var more []checkpoint.DueLook
		for i := range found {
			f := &found[i]
			useful := slices.DeleteFunc(slices.Clone(f.Threads), s.isWaiting)
			threads = append(threads, useful...)
			isCut := f.Count > looks[i].Skip+len(f.Threads) && len(f.Threads) == looks[i].Limit
			if isCut && len(useful) < looks[i].Limit/4 && looks[i].Limit < most {
				more = append(more, checkpoint.DueLook{
					Partition: looks[i].Partition, Skip: looks[i].Skip + looks[i].Limit, Limit: min(2*looks[i].Limit, most),
				})
			}
		}
		if !isFirst {
			s.restUntil = s.opts.Uptime() + restFactor*(s.opts.Uptime()-began)
		}
		if len(more) == 0 || len(threads) >= minUsefulBatch {
			return threads
		}
		looks = more
	}
}

// makeLooksInTime makes looks within an interval: a partition that hangs must not keep the threads of
// others waiting. The next look at it is made apart, and has more time.
func (s *Scheduler) makeLooksInTime(ctx context.Context, looks []checkpoint.DueLook) []checkpoint.DueThreads {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ScanInterval)
	defer cancel()
	return s.makeLooks(ctx, looks)
}

// makeLooks makes looks, and logs that partitions did not answer.
func (s *Scheduler) makeLooks(ctx context.Context, looks []checkpoint.DueLook) (found []checkpoint.DueThreads) {
	if p := contain.Call(func() { found = s.opts.Partitions.LookForDue(ctx, looks) }); p != nil {
		found = slices.Repeat([]checkpoint.DueThreads{{Err: p}}, len(looks))
	}
	var failed []int
	var err error
	for i := range found {
		if found[i].Err != nil {
			failed, err = append(failed, looks[i].Partition), found[i].Err
		}
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		s.log.Warn("cannot look for due work", zap.Ints("partitions", failed), zap.Error(err), runtime.CauseField(err))
	}
	return found
}

// probe makes looks at partitions that did not answer the last one. What it finds is processed
// with the next.
func (s *Scheduler) probe(ctx context.Context, looks []checkpoint.DueLook) {
	found := s.makeLooks(ctx, looks)
	s.looks.mu.Lock()
	now := s.opts.Uptime()
	s.looks.isProbing = false
	for i, look := range looks {
		if found[i].Err != nil {
			continue
		}
		s.looks.planner.NoteAnswer(look.Partition, now)
		for _, thread := range found[i].Threads {
			s.looks.noted[thread] = now
		}
	}
	s.looks.mu.Unlock()
	s.wakeUp()
}
