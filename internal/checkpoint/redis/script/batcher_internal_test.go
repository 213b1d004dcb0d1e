package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/contain"
)

// countSource counts the changes of a key, as apply.lua does for a thread. KEYS[1] is the
// hash, ARGV[1] the number of changes so far, ARGV[2] the id of the operation.
const countSource = `
local before = redis.call('HMGET', KEYS[1], 'n', 'op')
if before[2] == ARGV[2] then return {'DONE'} end
if (before[1] or '0') ~= ARGV[1] then return {'CONFLICT'} end
redis.call('HSET', KEYS[1], 'n', ARGV[1] + 1, 'op', ARGV[2])
return {'OK'}`

// batcherFixture is a batcher behind a proxy, and its server.
type batcherFixture struct {
	*testing.T
	server  *redistest.Server
	proxy   *redistest.Proxy
	script  *Script
	batcher *Batcher
}

func newBatcherFixture(t *testing.T) *batcherFixture {
	t.Helper()
	server := redistest.Start(t, "--appendfsync", "no")
	proxy := redistest.StartProxy(t, server)
	opts, err := goredis.ParseURL(proxy.URL())
	require.NoError(t, err)
	opts.MaxRetries, opts.DialerRetries, opts.ContextTimeoutEnabled = -1, 1, true
	client := NewClient(opts)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	r := &batcherFixture{
		t, server, proxy, &Script{source: countSource, hash: goredis.NewScript(countSource).Hash()},
		NewBatchers(client, zap.NewNop(), 16).OfPartition(3),
	}
	require.NoError(t, r.sendChange(t.Context(), "first", 0)) // the server knows the script
	return r
}

var errConflict = errors.New("the key has changed")

// newChange is a change of a key.
func (b *batcherFixture) newChange(ctx context.Context, key string, expect int) *PendingCall {
	call := NewCall(b.script, []string{key})
	call.AppendCount(expect)
	call.AppendText("op-" + strconv.Itoa(expect))
	return NewPendingCall(ctx, call, &Unanswered{})
}

// sendChange sends a change until it is answered.
func (b *batcherFixture) sendChange(ctx context.Context, key string, expect int) error {
	one := b.newChange(ctx, key, expect)
	var answer Reply
	err := Retry(ctx, func() (err error) {
		answer, err = b.batcher.SendCall(one)
		return err
	})
	if err != nil {
		return one.unanswered.WrapOutcome(ctx, ToContractError(ctx, err))
	}
	if answer.TextAt(0) == "CONFLICT" {
		return errConflict
	}
	return nil
}

// keyedChange is a change that is to be sent.
type keyedChange struct {
	key    string
	expect int
}

// sendTogether sends changes of many keys that wait for exchanges in flight. It returns the
// error of each.
func (b *batcherFixture) sendTogether(ctx context.Context, changes []keyedChange, meanwhile func()) []error {
	b.Helper()
	out := make([]error, len(changes))
	var all sync.WaitGroup
	b.setInFlight(maxInFlight)
	for i, c := range changes {
		all.Go(func() { out[i] = b.sendChange(ctx, c.key, c.expect) })
	}
	require.Eventually(b, func() bool { return b.countQueued() == len(changes) }, time.Minute, time.Millisecond)
	meanwhile()
	b.setInFlight(maxOverlap)
	for range maxOverlap {
		b.batcher.sendQueued()
	}
	all.Wait()
	return out
}

func (b *batcherFixture) setInFlight(exchanges int) {
	b.batcher.mu.Lock()
	defer b.batcher.mu.Unlock()
	b.batcher.inFlight = exchanges
}

func (b *batcherFixture) countQueued() int {
	b.batcher.mu.Lock()
	defer b.batcher.mu.Unlock()
	return len(b.batcher.queued)
}

func newChanges(n, expect int) []keyedChange {
	list := make([]keyedChange, n)
	for i := range list {
		list[i] = keyedChange{fmt.Sprint("t", i), expect}
	}
	return list
}

func (b *batcherFixture) countRequests() int {
	b.Helper()
	info, err := b.server.Client.InfoMap(b.Context(), "stats").Result()
	require.NoError(b, err)
	n, err := strconv.Atoi(info["Stats"]["total_reads_processed"])
	require.NoError(b, err)
	return n
}

func TestConcurrentChangesAreBatched(t *testing.T) {
	r := newBatcherFixture(t)
	before := r.countRequests()
	for _, err := range r.sendTogether(t.Context(), newChanges(200, 0), func() {}) {
		require.NoError(t, err)
	}
	require.Less(t, r.countRequests()-before, 100, "requests that arrived for 200 changes")
	keys, err := r.server.Client.DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.EqualValues(t, 201, keys)
}

func TestOneConflictLeavesTheOthers(t *testing.T) {
	r := newBatcherFixture(t)
	changes := newChanges(50, 0)
	for i := range changes {
		if i%2 == 1 {
			changes[i].expect = 7
		}
	}
	for i, err := range r.sendTogether(t.Context(), changes, func() {}) {
		if i%2 == 1 {
			require.ErrorIs(t, err, errConflict)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestForgottenScriptInABatch(t *testing.T) {
	r := newBatcherFixture(t)
	for _, err := range r.sendTogether(t.Context(), newChanges(50, 0), func() {
		require.NoError(t, r.server.Client.ScriptFlush(t.Context()).Err())
	}) {
		require.NoError(t, err)
	}
}

// TestUnansweredBatch loses answers that were for many: each change is looked up
// under its op, and none is made twice.
func TestUnansweredBatch(t *testing.T) {
	r := newBatcherFixture(t)
	for round := range 3 {
		for _, err := range r.sendTogether(t.Context(), newChanges(50, round), func() { r.proxy.LoseAnswers(4) }) {
			require.NoError(t, err)
		}
	}
	require.Positive(t, r.proxy.LostAnswers())
	for i := range 50 {
		n, err := r.server.Client.HGet(t.Context(), fmt.Sprint("t", i), "n").Int()
		require.NoError(t, err)
		require.Equal(t, 3, n)
	}
}

func TestCancelledChangeIsNotSent(t *testing.T) {
	r := newBatcherFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	for i, err := range r.sendTogether(t.Context(), newChanges(50, 0), func() {
		before := r.countQueued()
		go func() { gaveUp <- r.sendChange(ctx, "late", 0) }()
		require.Eventually(t, func() bool { return r.countQueued() > before }, time.Minute, time.Millisecond)
		cancel()
		require.ErrorIs(t, <-gaveUp, context.Canceled)
	}) {
		require.NoError(t, err, i)
	}
	there, err := r.server.Client.Exists(t.Context(), "late").Result()
	require.NoError(t, err)
	require.Zero(t, there)
}

// A call that is queued behind exchanges on dead connections is sent, though none follows it.
func TestQueuedCallPassesStuckExchanges(t *testing.T) {
	r := newBatcherFixture(t)
	r.setInFlight(maxOverlap) // they never end
	require.NoError(t, r.sendChange(t.Context(), "waits", 0))
	require.Zero(t, r.countQueued())
}

// TestFirstChangeOfABatchIsCancelled takes one along whose time ends before the
// answers are there.
func TestFirstChangeOfABatchIsCancelled(t *testing.T) {
	r := newBatcherFixture(t)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	list := make([]*PendingCall, 3)
	for i, c := range newChanges(len(list), 0) {
		list[i] = r.newChange(t.Context(), c.key, c.expect)
		list[i].done = make(chan struct{})
	}
	list[0].ctx = short
	r.proxy.Pause()
	go r.batcher.sendBatch(list)
	<-short.Done()
	r.proxy.Resume()
	for _, one := range list {
		<-one.done
		require.NoError(t, one.err)
		require.Equal(t, "OK", one.reply.TextAt(0))
	}
}

// TestBatchThatPanicsAnswersItsChanges holds up changes of which one has been
// answered already.
func TestBatchThatPanicsAnswersItsChanges(t *testing.T) {
	answered, waits := &PendingCall{done: make(chan struct{})}, &PendingCall{done: make(chan struct{})}
	close(answered.done)
	p := contain.Call(func() { panic("a defect") })
	failBatch([]*PendingCall{answered, waits}, p)
	<-waits.done
	require.NoError(t, answered.err)
	require.ErrorIs(t, waits.err, p)
}
