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
)

// pipes is a listener whose connections nobody made.
type pipes struct{ net.Listener }

func (pipes) Accept() (net.Conn, error) {
	here, _ := net.Pipe()
	return here, nil
}

// call makes a call on a connection of its own.
func (u *unread) call(t *testing.T) (*outlet, *connection) {
	t.Helper()
	c, err := counting{Listener: pipes{}, of: u}.Accept()
	require.NoError(t, err)
	o := u.newOutlet(peer.NewContext(t.Context(), &peer.Peer{Addr: c.RemoteAddr()}))
	require.NotNil(t, o.conn)
	return &o, o.conn
}

func (u *unread) bytes() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.held
}

func sized(n int) *frame { return &frame{bytes: make([]byte, n)} }

func hasRoom(o *outlet, n int) bool {
	ok, _ := o.room(n)
	return ok
}

func TestUnreadBytesAreBounded(t *testing.T) {
	u := newUnread(1<<20, 300<<10, time.Second, zap.NewNop())
	first, _ := u.call(t)
	second, _ := u.call(t)
	large := sized(300 << 10)
	require.True(t, hasRoom(first, 10<<20), "a message of any size goes while nothing waits")
	first.hold(large)
	require.False(t, hasRoom(first, 1), "the call has its part")
	require.True(t, hasRoom(second, 300<<10))
	rest := sized(500 << 10)
	second.hold(rest)
	third, _ := u.call(t)
	require.False(t, hasRoom(third, share+1), "all calls together have what there is")
	require.True(t, hasRoom(third, share), "there is room for what is small")
	last := sized(300 << 10)
	third.hold(last)
	fourth, _ := u.call(t)
	require.False(t, hasRoom(fourth, 1), "there is no room at all")
	third.release(last)
	_, freed := third.room(share + 1)
	second.release(rest)
	<-freed
	require.True(t, hasRoom(third, share+1))
	first.release(large)
	require.Zero(t, u.bytes())
	require.Empty(t, u.conns)
}

// However many calls there are, small answers are held up to the limit only, and
// a connection that holds nothing is served meanwhile.
func TestSmallAnswersOfManyCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, answer = 64 << 20, 60 << 10
		u := newUnread(most, 256<<10, 2*time.Second, zap.NewNop())
		shared := make([]byte, answer)
		call := func(c *connection) bool {
			o := &outlet{of: u, conn: c}
			if !hasRoom(o, answer) {
				return false
			}
			o.hold(&frame{bytes: shared})
			return true
		}
		var flooded []*connection
		refused := 0
		for range 4 {
			_, c := u.call(t)
			flooded = append(flooded, c)
			for range 5000 {
				if !call(c) {
					refused++
				}
			}
		}
		t.Logf("%d MiB held, %d answers wait", u.bytes()>>20, refused)
		require.LessOrEqual(t, u.bytes(), int64(most))
		require.Positive(t, refused)
		_, idle := u.call(t)
		require.True(t, call(idle), "a connection that holds nothing is served")

		for range 1000 {
			_, c := u.call(t)
			call(c)
		}
		require.Less(t, u.bytes(), int64(most+answer), "connections with little are many, too")
		later(3 * time.Second)
		synctest.Wait()
		require.True(t, flooded[0].closed)
		require.LessOrEqual(t, u.bytes(), int64(most/2))
		u.quiet()
	})
}

// What comes above the limit, since calls look for room at the same time, is
// relieved though no call waits.
func TestRelievedWithoutACallThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnread(1<<20, 0, 2*time.Second, zap.NewNop())
		for range 2 {
			o, _ := u.call(t)
			o.hold(sized(600 << 10))
		}
		later(5 * time.Second)
		synctest.Wait()
		require.LessOrEqual(t, u.bytes(), int64(1<<20))
		u.quiet()
	})
}

// quiet ends the timer of a test.
func (u *unread) quiet() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.relief != nil {
		u.relief.Stop()
	}
}

// Of small messages gRPC keeps more around them than in them: each counts, until
// it is written or its connection is closed.
func TestSmallMessagesCount(t *testing.T) {
	u := newUnread(1<<20, 0, time.Second, zap.NewNop())
	codec := newFraming()
	o, conn := u.call(t)
	f := sized(10)
	var sent []mem.BufferSlice
	for range 100 {
		data, err := codec.Marshal(&parcel{frame: f, outlet: o})
		require.NoError(t, err)
		require.Equal(t, 10, data.Len())
		sent = append(sent, data)
	}
	require.EqualValues(t, 100*(10+queued), u.bytes())
	for _, data := range sent[:60] {
		reader := data.Reader()
		data.Free()
		_, err := reader.Discard(10)
		require.NoError(t, err)
		require.NoError(t, reader.Close())
	}
	require.EqualValues(t, 40*(10+queued), u.bytes())
	require.Equal(t, u.bytes(), conn.holds())
	require.NoError(t, conn.Close())
	require.Zero(t, u.bytes())
	for _, data := range sent[60:] {
		data.Free()
	}
	require.Zero(t, u.bytes())
}

// A client that reads no small event has them counted.
func TestSmallEventsThatNobodyReadsCount(t *testing.T) {
	u := newUnread(1<<20, 0, time.Second, zap.NewNop())
	o, _ := u.call(t)
	for range 3000 {
		message, err := o.carry(&graphdv1.Run{RunId: "r"})
		require.NoError(t, err)
		_, err = newFraming().Marshal(message)
		require.NoError(t, err)
	}
	require.False(t, hasRoom(o, 1))
	u.quiet()
}

func TestBytesThatManyHoldCountOnce(t *testing.T) {
	u := newUnread(1<<20, 0, time.Second, zap.NewNop())
	f := sized(500 << 10)
	first, conn := u.call(t)
	for range 100 {
		other, _ := u.call(t)
		other.hold(f)
	}
	first.hold(f)
	first.hold(f)
	require.EqualValues(t, 500<<10, u.bytes())
	require.NoError(t, conn.Close())
	first.release(f) // gRPC lets go of it after that, or never
	require.EqualValues(t, 500<<10, u.bytes())
	for c := range u.conns {
		require.NoError(t, c.Close())
	}
	require.Zero(t, u.bytes())
}

func TestWhoReadsNothingIsClosedWhenOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnread(1<<20, 0, 2*time.Second, zap.NewNop())
		var stalled []*connection
		for range 4 {
			o, c := u.call(t)
			o.hold(sized(170 << 10))
			stalled = append(stalled, c)
			later(time.Millisecond)
		}
		reading, conn := u.call(t)
		reading.hold(sized(300 << 10))
		later(time.Minute)
		require.False(t, stalled[0].closed, "nobody waits")

		waiting, _ := u.call(t)
		done := make(chan error)
		go func() {
			_, err := waiting.pack(t.Context(), &graphdv1.Run{RunId: string(make([]byte, share+1))}, &runtime.Room{})
			done <- err
		}()
		step := sized(1 << 10)
		for range 10 { // one goes on reading
			later(100 * time.Millisecond)
			reading.hold(step)
			reading.release(step)
		}
		require.NoError(t, <-done)
		synctest.Wait()
		require.True(t, stalled[0].closed)
		require.False(t, stalled[3].closed, "half is enough")
		require.False(t, conn.closed)
		require.LessOrEqual(t, u.bytes(), int64(1<<19)+200<<10)
	})
}

func TestAnswersThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnread(100<<10, 0, time.Hour, zap.NewNop())
		full, _ := u.call(t)
		full.hold(sized(100 << 10))
		ctx, leave := context.WithCancel(t.Context())
		run := &graphdv1.Run{RunId: string(make([]byte, 90<<10))}
		done := make(chan error)
		go func() {
			o, _ := u.call(t)
			_, err := o.pack(ctx, run, &runtime.Room{})
			done <- err
		}()
		synctest.Wait()
		o, _ := u.call(t)
		_, err := o.pack(ctx, run, &runtime.Room{})
		require.ErrorIs(t, err, &runtime.Error{Reason: ReasonSlowConsumer})
		leave()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Zero(t, u.waiting)
		u.relief.Stop()
	})
}
