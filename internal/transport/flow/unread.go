package flow

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// UnreadTracker counts the bytes that this server holds because clients have not
// read them: bytes that gRPC was given and has not written, also of calls that are
// over. Beyond the limit, streams wait and leave their next events in the log, and
// the tracker closes the connections that read nothing for the longest time. The
// last quarter of the limit is for connections that hold little, so that they are
// served while others fill the rest.
type UnreadTracker struct {
	maxBytes     int64 // of all calls together, 0 = any number
	maxCallBytes int64 // of one call, 0 = any number
	stallTimeout time.Duration
	log          *zap.Logger

	mu           sync.Mutex
	heldBytes    int64
	waitingBytes int64                    // bytes of answers that wait to be given to gRPC
	conns        map[*connection]struct{} // connections that hold something
	freed        chan struct{}            // closed when something was read; nil = no waiter
	reliefTimer  *time.Timer              // looks for connections to close; nil = no waiter
}

// smallConnectionBytes is the number of bytes that a connection may hold in the
// last quarter of the limit.
const smallConnectionBytes = 64 << 10

// sharedLimit returns the bytes that all connections may hold together, whatever
// each holds.
func (u *UnreadTracker) sharedLimit() int64 { return u.maxBytes - u.maxBytes/4 }

// NewUnreadTracker makes an UnreadTracker. most bounds the bytes of all calls
// together and each those of one call, 0 = any number. While others wait, it closes
// a connection that reads nothing for timeout.
func NewUnreadTracker(most, each int64, timeout time.Duration, log *zap.Logger) *UnreadTracker {
	return &UnreadTracker{maxBytes: most, maxCallBytes: each, stallTimeout: timeout, log: log, conns: make(map[*connection]struct{})}
}

// CallUnread counts the unread bytes of one call. Its zero value has no connection
// and counts nothing.
type CallUnread struct {
	tracker *UnreadTracker
	conn    *connection

	heldBytes int64     // guarded by UnreadTracker.mu, as are the fields below
	lastRead  time.Time // when some of it was read last, or it began to hold
}

// HoldMessage counts the bytes of a message that is given to gRPC. A message counts
// once, however many calls send it.
func (c *CallUnread) HoldMessage(f *EncodedMessage) {
	u := c.tracker
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	c.holdMessageLocked(f)
}

// holdMessageLocked is HoldMessage for a caller that holds mu.
func (c *CallUnread) holdMessageLocked(f *EncodedMessage) {
	u := c.tracker
	if c.conn.isClosed {
		return
	}
	n := f.heldSize()
	if c.heldBytes == 0 {
		c.lastRead = time.Now()
		c.conn.unreadCalls[c] = struct{}{}
		u.conns[c.conn] = struct{}{}
	}
	c.heldBytes += n
	c.conn.heldBytes += n
	c.conn.addMessage(f, n)
	if u.maxBytes > 0 && u.heldBytes > u.maxBytes {
		u.startReliefTimer()
	}
}

// ReleaseMessage stops counting the bytes of a message that was written, or that
// nothing waits for any more.
func (c *CallUnread) ReleaseMessage(f *EncodedMessage) {
	u := c.tracker
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.conn.isClosed {
		return
	}
	n := f.heldSize()
	c.heldBytes -= n
	c.conn.heldBytes -= n
	c.lastRead = time.Now()
	c.conn.removeMessage(f, n)
	if c.heldBytes == 0 {
		delete(c.conn.unreadCalls, c)
		if len(c.conn.unreadCalls) == 0 {
			delete(u.conns, c.conn)
		}
	}
	u.notifyFreed()
}

// addMessage records that the connection holds a message. The caller holds mu.
func (c *connection) addMessage(f *EncodedMessage, n int64) {
	if f.isSmall() { // a small message counts each time
		c.smallBytes += n
		c.tracker.heldBytes += n
		return
	}
	if f.pendingSends++; f.pendingSends == 1 {
		c.tracker.heldBytes += n
	}
	c.messages[f]++
}

// removeMessage removes one hold of a message from the connection. The caller holds
// mu.
func (c *connection) removeMessage(f *EncodedMessage, n int64) {
	if f.isSmall() {
		c.smallBytes -= n
		c.tracker.heldBytes -= n
		return
	}
	if c.messages[f]--; c.messages[f] == 0 {
		delete(c.messages, f)
	}
	if f.pendingSends--; f.pendingSends == 0 {
		c.tracker.heldBytes -= n
	}
}

func (u *UnreadTracker) notifyFreed() {
	if u.freed != nil {
		close(u.freed)
		u.freed = nil
	}
}

// HasRoom reports whether n more bytes may be given to gRPC. If not, it returns a
// channel that is closed when that may have changed.
func (c *CallUnread) HasRoom(n int) (bool, <-chan struct{}) {
	u := c.tracker
	if u == nil {
		return true, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.mayHold(int64(n)) {
		return true, nil
	}
	return false, u.watchFreed()
}

// AdmitMessage is HasRoom for a message. It counts a large message at once, so that
// no other message takes the same room.
func (c *CallUnread) AdmitMessage(f *EncodedMessage) (bool, <-chan struct{}) {
	u := c.tracker
	if u == nil {
		return true, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !c.mayHold(int64(f.SendSize())) {
		return false, u.watchFreed()
	}
	if f.IsLarge() {
		c.holdMessageLocked(f)
	}
	return true, nil
}

// IsDrained reports whether the client has read all counted bytes. If not, it
// returns a channel as HasRoom does.
func (c *CallUnread) IsDrained() (bool, <-chan struct{}) {
	u := c.tracker
	if u == nil {
		return true, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.heldBytes == 0 || c.conn.isClosed {
		return true, nil
	}
	return false, u.watchFreed()
}

// watchFreed returns a channel that is closed when something was read. The caller
// holds mu.
func (u *UnreadTracker) watchFreed() <-chan struct{} {
	if u.freed == nil {
		u.freed = make(chan struct{})
	}
	u.startReliefTimer()
	return u.freed
}

// startReliefTimer sets the timer that closes stalled connections, unless it runs.
// The caller holds mu.
func (u *UnreadTracker) startReliefTimer() {
	if u.reliefTimer == nil {
		u.reliefTimer = time.AfterFunc(u.stallTimeout, u.containPanics(u.closeStalled))
	}
}

// containPanics wraps f for a timer: a panic ends f alone.
func (u *UnreadTracker) containPanics(f func()) func() {
	return contain.Func(f, contain.LogPanic(u.log, "closing connections that do not read panicked"))
}

// mayHold reports whether a call may hold n more bytes. While there is room at all
// it admits a message of any size. The caller holds mu.
func (c *CallUnread) mayHold(n int64) bool {
	u := c.tracker
	switch {
	case c.conn.isClosed:
		return true
	case u.maxBytes > 0 && u.heldBytes >= u.maxBytes:
		return false
	case c.conn.heldBytes+n <= smallConnectionBytes:
		return true
	case u.maxCallBytes > 0 && c.heldBytes >= u.maxCallBytes && c.heldBytes+n > smallConnectionBytes:
		return false
	}
	return u.maxBytes == 0 || u.heldBytes < u.sharedLimit()
}

// closeStalled closes connections that have read nothing for too long, the worst
// first, until half of the limit is free. It does not close connections that still
// read.
func (u *UnreadTracker) closeStalled() {
	for _, c := range u.listStalled() {
		u.log.Warn("connection closed: its client does not read, and others wait",
			zap.String("peer.address", c.RemoteAddr().String()))
		_ = c.Close() // the connection ends in any case
	}
}

// listStalled lists the connections to close, and sets its timer again while calls
// wait.
func (u *UnreadTracker) listStalled() []*connection {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reliefTimer = nil
	if u.freed != nil || u.maxBytes > 0 && u.heldBytes > u.maxBytes {
		u.startReliefTimer()
	}
	if u.maxBytes == 0 || u.heldBytes < u.sharedLimit() {
		return nil
	}
	limit := time.Now().Add(-u.stallTimeout)
	since := make(map[*connection]time.Time)
	for c := range u.conns {
		if oldest := c.oldestUnread(); !oldest.After(limit) {
			since[c] = oldest
		}
	}
	list := slices.SortedFunc(maps.Keys(since), func(a, b *connection) int { return since[a].Compare(since[b]) })
	left := u.heldBytes
	for i, c := range list {
		if left <= u.maxBytes/2 {
			return list[:i]
		}
		left -= c.freedByClosing()
	}
	return list
}

// oldestUnread returns the time since which a call of the connection waits for its
// client to read.
func (c *connection) oldestUnread() time.Time {
	var oldest time.Time
	for o := range c.unreadCalls {
		if oldest.IsZero() || o.lastRead.Before(oldest) {
			oldest = o.lastRead
		}
	}
	return oldest
}

// freedByClosing returns the number of bytes that closing the connection frees, of
// shared messages its part.
func (c *connection) freedByClosing() int64 {
	n := c.smallBytes
	for f, times := range c.messages {
		n += int64(len(f.Bytes)) * int64(times) / int64(f.pendingSends)
	}
	return n
}

// EncodeAnswer encodes an answer, and waits until the unread bytes leave room for
// it. The waiting answers have at most as many bytes as those that are held; a
// client that leaves more unread is refused. memory belongs to the answer, whose
// bytes count here from now on.
func (c *CallUnread) EncodeAnswer(ctx context.Context, answer any, memory *runtime.CallMemory) (any, error) {
	m, ok := answer.(protobuf.Message)
	if !ok || c.tracker == nil {
		return answer, nil
	}
	f, err := EncodeMessage(m)
	if err != nil {
		return nil, err
	}
	for {
		ok, freed := c.AdmitMessage(f)
		if ok {
			return &countedMessage{EncodedMessage: f, unread: c, isCounted: f.IsLarge()}, nil
		}
		if !c.tracker.addWaiting(len(f.Bytes)) {
			return nil, runtime.Errorf(reason.SlowConsumer, "the server holds too many answers that clients have not read").
				WithLimit("max-unread", c.tracker.maxBytes, 0)
		}
		memory.Release()
		select {
		case <-freed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		c.tracker.removeWaiting(len(f.Bytes))
		if err != nil {
			return nil, err
		}
	}
}

func (u *UnreadTracker) addWaiting(n int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waitingBytes+int64(n) > u.maxBytes && u.waitingBytes > 0 {
		return false
	}
	u.waitingBytes += int64(n)
	return true
}

func (u *UnreadTracker) removeWaiting(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waitingBytes -= int64(n)
}

// countedMessage is a message on its way to the client of one call.
type countedMessage struct {
	*EncodedMessage

	unread    *CallUnread
	isCounted bool // since it was admitted
	parts     [2]mem.Buffer
}

// Get implements mem.BufferPool. gRPC takes no buffers from this pool.
func (*countedMessage) Get(n int) *[]byte {
	bytes := make([]byte, n)
	return &bytes
}

// Put implements mem.BufferPool. gRPC calls it when it has no more use for the
// bytes.
func (c *countedMessage) Put(*[]byte) { c.unread.ReleaseMessage(c.EncodedMessage) }

// EncodeForSending makes a countedMessage of a message, which may be encoded
// already.
func (c *CallUnread) EncodeForSending(message any) (any, error) {
	if c.tracker == nil {
		return message, nil
	}
	switch m := message.(type) {
	case *EncodedMessage:
		return &countedMessage{EncodedMessage: m, unread: c}, nil
	case protobuf.Message:
		f, err := EncodeMessage(m)
		return &countedMessage{EncodedMessage: f, unread: c}, err
	}
	return message, nil
}

// connection is a connection of a client, with the bytes that the client has not
// read.
type connection struct {
	net.Conn

	tracker     *UnreadTracker
	addr        *remoteAddr
	inbound     *inboundConn             // what its client sends; nil = not counted
	unreadCalls map[*CallUnread]struct{} // calls that hold something; guarded by UnreadTracker.mu, as are the fields below
	heldBytes   int64                    // bytes of all of them
	messages    map[*EncodedMessage]int  // how often each is held, small ones left out
	smallBytes  int64                    // bytes of the small messages
	isClosed    bool
}

// RemoteAddr returns an address from which the calls of the connection find it.
func (c *connection) RemoteAddr() net.Addr { return c.addr }

// NetConn returns the connection below.
func (c *connection) NetConn() net.Conn { return c.Conn }

type remoteAddr struct {
	net.Addr

	conn *connection
}

// Close ends the connection and stops counting its bytes.
func (c *connection) Close() error {
	u := c.tracker
	u.mu.Lock()
	if !c.isClosed {
		c.isClosed = true
		u.heldBytes -= c.smallBytes
		for f, times := range c.messages {
			if f.pendingSends -= times; f.pendingSends == 0 {
				u.heldBytes -= int64(len(f.Bytes))
			}
		}
		c.unreadCalls, c.messages = nil, nil
		delete(u.conns, c)
		u.notifyFreed()
	}
	u.mu.Unlock()
	return c.Conn.Close()
}

// countingListener is a listener whose connections are counted.
type countingListener struct {
	net.Listener

	tracker *UnreadTracker
}

// WrapListener returns a listener whose connections count the bytes that their
// clients leave unread.
func (u *UnreadTracker) WrapListener(l net.Listener) net.Listener {
	return countingListener{Listener: l, tracker: u}
}

// Accept waits for a connection.
func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	known := &connection{Conn: c, tracker: l.tracker, unreadCalls: make(map[*CallUnread]struct{}), messages: make(map[*EncodedMessage]int)}
	known.addr = &remoteAddr{Addr: c.RemoteAddr(), conn: known}
	return known, nil
}

// HeldBytes returns the number of bytes that are held.
func (u *UnreadTracker) HeldBytes() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.heldBytes
}

// NewCallUnread returns the CallUnread of a call.
func (u *UnreadTracker) NewCallUnread(ctx context.Context) CallUnread {
	if p, ok := peer.FromContext(ctx); ok && u != nil {
		if addr, ok := p.Addr.(*remoteAddr); ok {
			return CallUnread{tracker: u, conn: addr.conn}
		}
	}
	return CallUnread{}
}
