package script

import (
	"context"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
)

// Batcher sends the calls of scripts for many threads to one Redis server: changes, and
// the reads before them. A call is sent at once and alone when few exchanges are in flight.
// Otherwise it is queued, and the queue is sent in one exchange, whose cost and disk write
// are shared. No call waits for others to arrive.
type Batcher struct {
	log    *zap.Logger
	client goredis.UniversalClient

	mu       sync.Mutex
	queued   []*PendingCall
	inFlight int       // exchanges under way
	lastSent time.Time // when the last of them began
}

// Two exchanges overlap, so that the server has work while the answers to the
// first are read. When no exchange ends for a while, their connections may be
// dead without an error, and more may start.
const (
	maxOverlap    = 2
	maxInFlight   = 16
	stuckAfter    = 20 * time.Millisecond
	maxBatchCalls = 64      // in one exchange
	maxBatchBytes = 1 << 20 // their bytes, unless a single call is more
)

// Batchers has a batcher for a server; in a cluster a batcher per partition,
// since a partition may move at any time.
type Batchers []*Batcher

// NewBatchers makes the batchers of a store.
func NewBatchers(client goredis.UniversalClient, log *zap.Logger, partitions int) Batchers {
	if _, many := client.(*goredis.ClusterClient); !many {
		partitions = 1
	}
	list := make(Batchers, partitions)
	for i := range list {
		list[i] = &Batcher{client: client, log: log}
	}
	return list
}

// OfPartition returns the batcher for the server of a partition.
func (b Batchers) OfPartition(partition int) *Batcher {
	if len(b) == 1 {
		return b[0]
	}
	return b[partition]
}

// PendingCall is a call that is queued or in flight.
type PendingCall struct {
	ctx        context.Context //nolint:containedctx // lives as long as the call
	command    []any           // EVALSHA
	source     string          // of the script, for a server that does not know it
	size       int             // in bytes, about
	unanswered *Unanswered

	reply Reply
	err   error
	done  chan struct{} // closed when reply and err are set; nil for a call that is sent alone
}

// NewPendingCall makes what is sent out of a call, which the caller must not use
// afterwards. missed records attempts without an answer.
func NewPendingCall(ctx context.Context, call *Call, missed *Unanswered) *PendingCall {
	r := &PendingCall{ctx: ctx, source: call.script.source, unanswered: missed}
	r.command, r.size = call.buildCommand()
	call.recycleBuffers()
	return r
}

// SendCall makes a single attempt at a call, and waits for the reply. It returns the
// error of the server, or that of the call's context when it ends first: a change may
// still be applied.
func (b *Batcher) SendCall(r *PendingCall) (Reply, error) {
	r.reply, r.err, r.done = nil, nil, nil
	if b.startOrEnqueue(r) {
		r.sendAlone(b.client)
		b.sendQueued()
		return r.reply, r.err
	}
	stuck := time.NewTimer(stuckAfter)
	defer stuck.Stop()
	for {
		select {
		case <-r.done:
			return r.reply, r.err
		case <-r.ctx.Done():
			return nil, context.Cause(r.ctx)
		case <-stuck.C:
			stuck.Reset(b.sendIfStuck())
		}
	}
}

// sendIfStuck sends the queue in a further exchange when none has ended for a while. It
// returns after what time to look again.
func (b *Batcher) sendIfStuck() time.Duration {
	b.mu.Lock()
	now := time.Now()
	rest := stuckAfter - now.Sub(b.lastSent)
	isStuck := rest <= 0 && b.inFlight < maxInFlight
	if isStuck {
		b.inFlight++
		b.lastSent = now
	}
	b.mu.Unlock()
	if isStuck {
		b.sendQueued()
	}
	if rest <= 0 {
		return stuckAfter
	}
	return rest
}

// startOrEnqueue reports whether a call may be sent at once; otherwise it
// queues it.
func (b *Batcher) startOrEnqueue(r *PendingCall) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	isFree := b.inFlight < maxOverlap && len(b.queued) == 0
	isStuck := now.Sub(b.lastSent) > stuckAfter // the exchanges in flight may not end soon
	if isFree || isStuck && b.inFlight < maxInFlight {
		b.inFlight++
		b.lastSent = now
		return true
	}
	r.done = make(chan struct{})
	b.queued = append(b.queued, r)
	return false
}

// sendQueued sends what is queued in the place of an exchange that has ended, one exchange
// after the other, and gives the place up when nothing is queued.
func (b *Batcher) sendQueued() {
	if list := b.takeBatch(); list != nil {
		go contain.Func(func() {
			for list != nil {
				if p := contain.Call(func() { b.sendBatch(list) }); p != nil {
					failBatch(list, p)
				}
				list = b.takeBatch()
			}
		}, contain.LogPanic(b.log, "sending calls together panicked"))()
	}
}

// takeBatch takes the calls of the next exchange; nil when none is queued.
func (b *Batcher) takeBatch() []*PendingCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A call whose caller has gone must not be sent: no caller would learn the outcome
	// of a change.
	b.queued = slices.DeleteFunc(b.queued, func(r *PendingCall) bool { return r.ctx.Err() != nil })
	n, size := 0, 0
	for n < len(b.queued) && n < maxBatchCalls && (n == 0 || size+b.queued[n].size <= maxBatchBytes) {
		size += b.queued[n].size
		n++
	}
	if n == 0 {
		b.inFlight--
		return nil
	}
	list := slices.Clone(b.queued[:n])
	b.queued = slices.Delete(b.queued, 0, n)
	b.lastSent = time.Now()
	return list
}

// failBatch answers the calls of an exchange that panicked. Changes may have been
// applied.
func failBatch(list []*PendingCall, p *contain.PanicError) {
	for _, r := range list {
		select {
		case <-r.done:
		default:
			r.err = p
			close(r.done)
		}
	}
}

// sendBatch makes an exchange.
func (b *Batcher) sendBatch(list []*PendingCall) {
	if len(list) == 1 {
		list[0].sendAlone(b.client)
		close(list[0].done)
		return
	}
	// A caller that gives up must not stop the others.
	ctx := context.WithoutCancel(list[0].ctx)
	missed := make(unansweredByCommand, len(list))
	pipe := b.client.Pipeline()
	cmds := make([]*goredis.Cmd, len(list))
	for i, r := range list {
		cmds[i] = goredis.NewCmd(ctx, r.command...)
		missed[cmds[i]] = r.unanswered
		_ = pipe.Process(ctx, cmds[i]) // only queues it
	}
	_, _ = pipe.Exec(context.WithValue(ctx, unansweredKey{}, missed)) // the error of each command is read below
	for i, r := range list {
		r.reply, r.err = cmds[i].Slice()
		if goredis.HasErrorPrefix(r.err, "NOSCRIPT") {
			r.sendAlone(b.client)
		}
		close(r.done)
	}
}

func (p *PendingCall) sendAlone(client goredis.UniversalClient) {
	ctx := p.unanswered.WithContext(p.ctx)
	cmd := goredis.NewCmd(ctx, p.command...)
	_ = client.Process(ctx, cmd) // cmd holds the error
	if goredis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		whole := slices.Clone(p.command)
		whole[0], whole[1] = "eval", p.source
		cmd = goredis.NewCmd(ctx, whole...)
		_ = client.Process(ctx, cmd)
	}
	p.reply, p.err = cmd.Slice()
}
