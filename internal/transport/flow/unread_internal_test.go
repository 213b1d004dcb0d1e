package flow

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// pipeListener is a listener with connections in memory.
type pipeListener struct{ net.Listener }

func (pipeListener) Accept() (net.Conn, error) {
	here, _ := net.Pipe()
	return here, nil
}

// openCall makes a call on a connection of its own.
func (u *UnreadTracker) openCall(t *testing.T) (*CallUnread, *connection) {
	t.Helper()
	c, err := countingListener{Listener: pipeListener{}, tracker: u}.Accept()
	require.NoError(t, err)
	o := u.NewCallUnread(peer.NewContext(t.Context(), &peer.Peer{Addr: c.RemoteAddr()}))
	require.NotNil(t, o.conn)
	return &o, o.conn
}

// passTime lets virtual time pass.
func passTime(d time.Duration) { <-time.NewTimer(d).C }

func newSizedMessage(n int) *EncodedMessage { return NewEncodedMessage(make([]byte, n)) }

func roomFor(o *CallUnread, n int) bool {
	ok, _ := o.HasRoom(n)
	return ok
}

func TestUnreadBytesAreBounded(t *testing.T) {
	u := NewUnreadTracker(1<<20, 300<<10, time.Second, zap.NewNop())
	first, _ := u.openCall(t)
	second, _ := u.openCall(t)
	large := newSizedMessage(300 << 10)
	require.True(t, roomFor(first, 10<<20), "a message of any size goes while nothing waits")
	first.HoldMessage(large)
	require.False(t, roomFor(first, 1), "the call has its part")
	require.True(t, roomFor(second, 300<<10))
	rest := newSizedMessage(500 << 10)
	second.HoldMessage(rest)
	third, _ := u.openCall(t)
	require.False(t, roomFor(third, smallConnectionBytes+1), "all calls together have what there is")
	require.True(t, roomFor(third, smallConnectionBytes), "there is room for what is small")
	last := newSizedMessage(300 << 10)
	third.HoldMessage(last)
	fourth, _ := u.openCall(t)
	require.False(t, roomFor(fourth, 1), "there is no room at all")
	third.ReleaseMessage(last)
	_, freed := third.HasRoom(smallConnectionBytes + 1)
	second.ReleaseMessage(rest)
	<-freed
	require.True(t, roomFor(third, smallConnectionBytes+1))
	first.ReleaseMessage(large)
	require.Zero(t, u.HeldBytes())
	require.Empty(t, u.conns)
}

// However many calls there are, small answers are held only up to the limit, and a
// connection that holds nothing is served meanwhile.
func TestSmallAnswersOfManyCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, answer = 64 << 20, 60 << 10
		u := NewUnreadTracker(most, 256<<10, 2*time.Second, zap.NewNop())
		shared := make([]byte, answer)
		call := func(c *connection) bool {
			o := &CallUnread{tracker: u, conn: c}
			if !roomFor(o, answer) {
				return false
			}
			o.HoldMessage(NewEncodedMessage(shared))
			return true
		}
		var flooded []*connection
		refused := 0
		for range 4 {
			_, c := u.openCall(t)
			flooded = append(flooded, c)
			for range 5000 {
				if !call(c) {
					refused++
				}
			}
		}
		t.Logf("%d MiB held, %d answers wait", u.HeldBytes()>>20, refused)
		require.LessOrEqual(t, u.HeldBytes(), int64(most))
		require.Positive(t, refused)
		_, idle := u.openCall(t)
		require.True(t, call(idle), "a connection that holds nothing is served")

		for range 1000 {
			_, c := u.openCall(t)
			call(c)
		}
		require.Less(t, u.HeldBytes(), int64(most+answer), "connections with little are many, too")
		passTime(3 * time.Second)
		synctest.Wait()
		require.True(t, flooded[0].isClosed)
		require.LessOrEqual(t, u.HeldBytes(), int64(most/2))
		u.stopReliefTimer()
	})
}

// Calls check the limit at the same time and may exceed it. The excess is relieved
// although no call waits.
func TestRelievedWithoutACallThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUnreadTracker(1<<20, 0, 2*time.Second, zap.NewNop())
		for range 2 {
			o, _ := u.openCall(t)
			o.HoldMessage(newSizedMessage(600 << 10))
		}
		passTime(5 * time.Second)
		synctest.Wait()
		require.LessOrEqual(t, u.HeldBytes(), int64(1<<20))
		u.stopReliefTimer()
	})
}

// stopReliefTimer ends the timer of a test.
func (u *UnreadTracker) stopReliefTimer() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reliefTimer != nil {
		u.reliefTimer.Stop()
	}
}

// gRPC holds more around a small message than in it: each counts, until it is
// written or its connection is closed.
func TestSmallMessagesCount(t *testing.T) {
	u := NewUnreadTracker(1<<20, 0, time.Second, zap.NewNop())
	codec := NewCodec()
	o, conn := u.openCall(t)
	f := newSizedMessage(10)
	var sent []mem.BufferSlice
	for range 100 {
		data, err := codec.Marshal(&countedMessage{EncodedMessage: f, unread: o})
		require.NoError(t, err)
		require.Equal(t, 10, data.Len())
		sent = append(sent, data)
	}
	require.EqualValues(t, 100*(10+queuedOverhead), u.HeldBytes())
	for _, data := range sent[:60] {
		reader := data.Reader()
		data.Free()
		_, err := reader.Discard(10)
		require.NoError(t, err)
		require.NoError(t, reader.Close())
	}
	require.EqualValues(t, 40*(10+queuedOverhead), u.HeldBytes())
	require.Equal(t, u.HeldBytes(), conn.freedByClosing())
	require.NoError(t, conn.Close())
	require.Zero(t, u.HeldBytes())
	for _, data := range sent[60:] {
		data.Free()
	}
	require.Zero(t, u.HeldBytes())
}

// Small events that a client does not read are counted.
func TestSmallEventsThatNobodyReadsCount(t *testing.T) {
	u := NewUnreadTracker(1<<20, 0, time.Second, zap.NewNop())
	o, _ := u.openCall(t)
	for range 3000 {
		message, err := o.EncodeForSending(&graphdv1.Run{RunId: "r"})
		require.NoError(t, err)
		_, err = NewCodec().Marshal(message)
		require.NoError(t, err)
	}
	require.False(t, roomFor(o, 1))
	u.stopReliefTimer()
}

func TestSharedBytesCountOnce(t *testing.T) {
	u := NewUnreadTracker(1<<20, 0, time.Second, zap.NewNop())
	f := newSizedMessage(500 << 10)
	first, conn := u.openCall(t)
	for range 100 {
		other, _ := u.openCall(t)
		other.HoldMessage(f)
	}
	first.HoldMessage(f)
	first.HoldMessage(f)
	require.EqualValues(t, 500<<10, u.HeldBytes())
	require.NoError(t, conn.Close())
	first.ReleaseMessage(f) // gRPC releases it after that, or never
	require.EqualValues(t, 500<<10, u.HeldBytes())
	for c := range u.conns {
		require.NoError(t, c.Close())
	}
	require.Zero(t, u.HeldBytes())
}

func TestStalledConnectionIsClosedWhenOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUnreadTracker(1<<20, 0, 2*time.Second, zap.NewNop())
		var stalled []*connection
		for range 4 {
			o, c := u.openCall(t)
			o.HoldMessage(newSizedMessage(170 << 10))
			stalled = append(stalled, c)
			passTime(time.Millisecond)
		}
		reading, conn := u.openCall(t)
		reading.HoldMessage(newSizedMessage(300 << 10))
		passTime(time.Minute)
		require.False(t, stalled[0].isClosed, "no call waits")

		waiting, _ := u.openCall(t)
		done := make(chan error)
		go func() {
			_, err := waiting.EncodeAnswer(t.Context(), &graphdv1.Run{RunId: string(make([]byte, smallConnectionBytes+1))}, &runtime.CallMemory{})
			done <- err
		}()
		step := newSizedMessage(1 << 10)
		for range 10 { // one client still reads
			passTime(100 * time.Millisecond)
			reading.HoldMessage(step)
			reading.ReleaseMessage(step)
		}
		require.NoError(t, <-done)
		synctest.Wait()
		require.True(t, stalled[0].isClosed)
		require.False(t, stalled[3].isClosed, "half is enough")
		require.False(t, conn.isClosed)
		require.LessOrEqual(t, u.HeldBytes(), int64(1<<19)+200<<10)
	})
}

func TestAnswersThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUnreadTracker(100<<10, 0, time.Hour, zap.NewNop())
		full, _ := u.openCall(t)
		full.HoldMessage(newSizedMessage(100 << 10))
		ctx, leave := context.WithCancel(t.Context())
		run := &graphdv1.Run{RunId: string(make([]byte, 90<<10))}
		done := make(chan error)
		go func() {
			o, _ := u.openCall(t)
			_, err := o.EncodeAnswer(ctx, run, &runtime.CallMemory{})
			done <- err
		}()
		synctest.Wait()
		o, _ := u.openCall(t)
		_, err := o.EncodeAnswer(ctx, run, &runtime.CallMemory{})
		require.ErrorIs(t, err, &runtime.Error{Reason: reason.SlowConsumer})
		leave()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Zero(t, u.waitingBytes)
		u.reliefTimer.Stop()
	})
}

// An answer counts as soon as it is encoded.
func TestLargeAnswersCountWhenTheyArePacked(t *testing.T) {
	u := NewUnreadTracker(1<<20, 0, time.Hour, zap.NewNop())
	o, _ := u.openCall(t)
	run := &graphdv1.Run{Output: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: `"` + strings.Repeat("x", 100<<10) + `"`}}}
	packed, err := o.EncodeAnswer(t.Context(), run, &runtime.CallMemory{})
	require.NoError(t, err)
	held := u.HeldBytes()
	require.Greater(t, held, int64(100<<10))
	data, err := NewCodec().Marshal(packed)
	require.NoError(t, err)
	require.Equal(t, held, u.HeldBytes(), "once")
	data.Free()
	require.Zero(t, u.HeldBytes())
}
