package transport

import (
	"context"
	"net"
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
func (u *unreadTracker) openCall(t *testing.T) (*callUnread, *connection) {
	t.Helper()
	c, err := countingListener{Listener: pipeListener{}, tracker: u}.Accept()
	require.NoError(t, err)
	o := u.newCallUnread(peer.NewContext(t.Context(), &peer.Peer{Addr: c.RemoteAddr()}))
	require.NotNil(t, o.conn)
	return &o, o.conn
}

func (u *unreadTracker) readHeldBytes() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.heldBytes
}

func newSizedMessage(n int) *encodedMessage { return newFrame(make([]byte, n)) }

func roomFor(o *callUnread, n int) bool {
	ok, _ := o.hasRoom(n)
	return ok
}

func TestUnreadBytesAreBounded(t *testing.T) {
	u := newUnreadTracker(1<<20, 300<<10, time.Second, zap.NewNop())
	first, _ := u.openCall(t)
	second, _ := u.openCall(t)
	large := newSizedMessage(300 << 10)
	require.True(t, roomFor(first, 10<<20), "a message of any size goes while nothing waits")
	first.holdMessage(large)
	require.False(t, roomFor(first, 1), "the call has its part")
	require.True(t, roomFor(second, 300<<10))
	rest := newSizedMessage(500 << 10)
	second.holdMessage(rest)
	third, _ := u.openCall(t)
	require.False(t, roomFor(third, smallConnectionBytes+1), "all calls together have what there is")
	require.True(t, roomFor(third, smallConnectionBytes), "there is room for what is small")
	last := newSizedMessage(300 << 10)
	third.holdMessage(last)
	fourth, _ := u.openCall(t)
	require.False(t, roomFor(fourth, 1), "there is no room at all")
	third.releaseMessage(last)
	_, freed := third.hasRoom(smallConnectionBytes + 1)
	second.releaseMessage(rest)
	<-freed
	require.True(t, roomFor(third, smallConnectionBytes+1))
	first.releaseMessage(large)
	require.Zero(t, u.readHeldBytes())
	require.Empty(t, u.conns)
}

// However many calls there are, small answers are held up to the limit only, and
// a connection that holds nothing is served meanwhile.
func TestSmallAnswersOfManyCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, answer = 64 << 20, 60 << 10
		u := newUnreadTracker(most, 256<<10, 2*time.Second, zap.NewNop())
		shared := make([]byte, answer)
		call := func(c *connection) bool {
			o := &callUnread{tracker: u, conn: c}
			if !roomFor(o, answer) {
				return false
			}
			o.holdMessage(newFrame(shared))
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
		t.Logf("%d MiB held, %d answers wait", u.readHeldBytes()>>20, refused)
		require.LessOrEqual(t, u.readHeldBytes(), int64(most))
		require.Positive(t, refused)
		_, idle := u.openCall(t)
		require.True(t, call(idle), "a connection that holds nothing is served")

		for range 1000 {
			_, c := u.openCall(t)
			call(c)
		}
		require.Less(t, u.readHeldBytes(), int64(most+answer), "connections with little are many, too")
		sleepVirtual(3 * time.Second)
		synctest.Wait()
		require.True(t, flooded[0].isClosed)
		require.LessOrEqual(t, u.readHeldBytes(), int64(most/2))
		u.stopReliefTimer()
	})
}

// What comes above the limit, since calls check the limit at the same time, is
// relieved though no call waits.
func TestRelievedWithoutACallThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnreadTracker(1<<20, 0, 2*time.Second, zap.NewNop())
		for range 2 {
			o, _ := u.openCall(t)
			o.holdMessage(newSizedMessage(600 << 10))
		}
		sleepVirtual(5 * time.Second)
		synctest.Wait()
		require.LessOrEqual(t, u.readHeldBytes(), int64(1<<20))
		u.stopReliefTimer()
	})
}

// stopReliefTimer ends the timer of a test.
func (u *unreadTracker) stopReliefTimer() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reliefTimer != nil {
		u.reliefTimer.Stop()
	}
}

// Of small messages gRPC keeps more around them than in them: each counts, until
// it is written or its connection is closed.
func TestSmallMessagesCount(t *testing.T) {
	u := newUnreadTracker(1<<20, 0, time.Second, zap.NewNop())
	codec := newEncodedCodec()
	o, conn := u.openCall(t)
	f := newSizedMessage(10)
	var sent []mem.BufferSlice
	for range 100 {
		data, err := codec.Marshal(&countedMessage{encodedMessage: f, unread: o})
		require.NoError(t, err)
		require.Equal(t, 10, data.Len())
		sent = append(sent, data)
	}
	require.EqualValues(t, 100*(10+queuedOverhead), u.readHeldBytes())
	for _, data := range sent[:60] {
		reader := data.Reader()
		data.Free()
		_, err := reader.Discard(10)
		require.NoError(t, err)
		require.NoError(t, reader.Close())
	}
	require.EqualValues(t, 40*(10+queuedOverhead), u.readHeldBytes())
	require.Equal(t, u.readHeldBytes(), conn.freedByClosing())
	require.NoError(t, conn.Close())
	require.Zero(t, u.readHeldBytes())
	for _, data := range sent[60:] {
		data.Free()
	}
	require.Zero(t, u.readHeldBytes())
}

// A client that reads no small event has them counted.
func TestSmallEventsThatNobodyReadsCount(t *testing.T) {
	u := newUnreadTracker(1<<20, 0, time.Second, zap.NewNop())
	o, _ := u.openCall(t)
	for range 3000 {
		message, err := o.encodeForSending(&graphdv1.Run{RunId: "r"})
		require.NoError(t, err)
		_, err = newEncodedCodec().Marshal(message)
		require.NoError(t, err)
	}
	require.False(t, roomFor(o, 1))
	u.stopReliefTimer()
}

func TestSharedBytesCountOnce(t *testing.T) {
	u := newUnreadTracker(1<<20, 0, time.Second, zap.NewNop())
	f := newSizedMessage(500 << 10)
	first, conn := u.openCall(t)
	for range 100 {
		other, _ := u.openCall(t)
		other.holdMessage(f)
	}
	first.holdMessage(f)
	first.holdMessage(f)
	require.EqualValues(t, 500<<10, u.readHeldBytes())
	require.NoError(t, conn.Close())
	first.releaseMessage(f) // gRPC lets go of it after that, or never
	require.EqualValues(t, 500<<10, u.readHeldBytes())
	for c := range u.conns {
		require.NoError(t, c.Close())
	}
	require.Zero(t, u.readHeldBytes())
}

func TestStalledConnectionIsClosedWhenOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnreadTracker(1<<20, 0, 2*time.Second, zap.NewNop())
		var stalled []*connection
		for range 4 {
			o, c := u.openCall(t)
			o.holdMessage(newSizedMessage(170 << 10))
			stalled = append(stalled, c)
			sleepVirtual(time.Millisecond)
		}
		reading, conn := u.openCall(t)
		reading.holdMessage(newSizedMessage(300 << 10))
		sleepVirtual(time.Minute)
		require.False(t, stalled[0].isClosed, "no call waits")

		waiting, _ := u.openCall(t)
		done := make(chan error)
		go func() {
			_, err := waiting.encodeAnswer(t.Context(), &graphdv1.Run{RunId: string(make([]byte, smallConnectionBytes+1))}, &runtime.CallMemory{})
			done <- err
		}()
		step := newSizedMessage(1 << 10)
		for range 10 { // one goes on reading
			sleepVirtual(100 * time.Millisecond)
			reading.holdMessage(step)
			reading.releaseMessage(step)
		}
		require.NoError(t, <-done)
		synctest.Wait()
		require.True(t, stalled[0].isClosed)
		require.False(t, stalled[3].isClosed, "half is enough")
		require.False(t, conn.isClosed)
		require.LessOrEqual(t, u.readHeldBytes(), int64(1<<19)+200<<10)
	})
}

func TestAnswersThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnreadTracker(100<<10, 0, time.Hour, zap.NewNop())
		full, _ := u.openCall(t)
		full.holdMessage(newSizedMessage(100 << 10))
		ctx, leave := context.WithCancel(t.Context())
		run := &graphdv1.Run{RunId: string(make([]byte, 90<<10))}
		done := make(chan error)
		go func() {
			o, _ := u.openCall(t)
			_, err := o.encodeAnswer(ctx, run, &runtime.CallMemory{})
			done <- err
		}()
		synctest.Wait()
		o, _ := u.openCall(t)
		_, err := o.encodeAnswer(ctx, run, &runtime.CallMemory{})
		require.ErrorIs(t, err, &runtime.Error{Reason: reason.SlowConsumer})
		leave()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Zero(t, u.waitingBytes)
		u.reliefTimer.Stop()
	})
}
