package transport

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/peer"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// unread counts the bytes that this server holds because clients have not read
// them: what gRPC was given and has not written, also of calls that are over.
// When there are too many, streams wait and leave what follows in the log, and
// the connections that read nothing for the longest time are closed. The last
// quarter is for connections that hold little, so that they are served while
// others fill the rest.
type unread struct {
	most     int64 // of all calls together, 0 = any number
	each     int64 // of one call, 0 = any number
	patience time.Duration
	log      *zap.Logger

	mu      sync.Mutex
	held    int64
	waiting int64                    // bytes of answers that wait to be given to gRPC
	conns   map[*connection]struct{} // those that hold something
	freed   chan struct{}            // closed when something was read; nil = nobody waits for that
	relief  *time.Timer              // looks for connections to close; nil = nobody waits
}

// share is what a connection may hold of the last quarter.
const share = 64 << 10

// common is what all connections may hold, however much each does.
func (u *unread) common() int64 { return u.most - u.most/4 }

func newUnread(most, each int64, patience time.Duration, log *zap.Logger) *unread {
	return &unread{most: most, each: each, patience: patience, log: log, conns: make(map[*connection]struct{})}
}

// outlet is what one call holds. Its zero value, which has no connection,
// counts nothing.
type outlet struct {
	of   *unread
	conn *connection

	held  int64     // guarded by unread.mu, as is what follows
	since time.Time // when something of it was read last, or it began to hold
}

// hold counts bytes that are given to gRPC; f is what they belong to, which
// counts once however many calls send it.
func (o *outlet) hold(f *frame) {
	u := o.of
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	o.count(f)
}

// count is hold for a caller that holds mu.
func (o *outlet) count(f *frame) {
	u := o.of
	if o.conn.closed {
		return
	}
	n := f.weight()
	if o.held == 0 {
		o.since = time.Now()
		o.conn.outlets[o] = struct{}{}
		u.conns[o.conn] = struct{}{}
	}
	o.held += n
	o.conn.held += n
	o.conn.take(f, n)
	if u.most > 0 && u.held > u.most {
		u.arm()
	}
}

// release counts bytes that were written, or that nobody waits for any more.
func (o *outlet) release(f *frame) {
	u := o.of
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if o.conn.closed {
		return
	}
	n := f.weight()
	o.held -= n
	o.conn.held -= n
	o.since = time.Now()
	o.conn.drop(f, n)
	if o.held == 0 {
		delete(o.conn.outlets, o)
		if len(o.conn.outlets) == 0 {
			delete(u.conns, o.conn)
		}
	}
	u.wake()
}

// take notes that the connection holds a frame. The caller holds mu.
func (c *connection) take(f *frame, n int64) {
	if f.small() { // it counts each time
		c.small += n
		c.of.held += n
		return
	}
	if f.holders++; f.holders == 1 {
		c.of.held += n
	}
	c.frames[f]++
}

// drop forgets that the connection holds a frame once. The caller holds mu.
func (c *connection) drop(f *frame, n int64) {
	if f.small() {
		c.small -= n
		c.of.held -= n
		return
	}
	if c.frames[f]--; c.frames[f] == 0 {
		delete(c.frames, f)
	}
	if f.holders--; f.holders == 0 {
		c.of.held -= n
	}
}

func (u *unread) wake() {
	if u.freed != nil {
		close(u.freed)
		u.freed = nil
	}
}

// room reports whether n more bytes may be given to gRPC. If not, it returns a
// channel that is closed when that may have changed.
func (o *outlet) room(n int) (bool, <-chan struct{}) {
	u := o.of
	if u == nil {
		return true, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if o.fits(int64(n)) {
		return true, nil
	}
	return false, u.watch()
}

// admit is room for a frame. A large one counts at once, so that as many as find room
// also have it; the caller releases it, unless it was admitted to be given to gRPC once.
func (o *outlet) admit(f *frame) (bool, <-chan struct{}) {
	u := o.of
	if u == nil {
		return true, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !o.fits(int64(f.size())) {
		return false, u.watch()
	}
	if f.isLarge() {
		o.count(f)
	}
	return true, nil
}

// drained reports whether the client has read all that is counted; if not, it
// returns what room returns.
func (o *outlet) drained() (bool, <-chan struct{}) {
	u := o.of
	if u == nil {
		return true, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if o.held == 0 || o.conn.closed {
		return true, nil
	}
	return false, u.watch()
}

// watch returns a channel that is closed when something was read. The caller
// holds mu.
func (u *unread) watch() <-chan struct{} {
	if u.freed == nil {
		u.freed = make(chan struct{})
	}
	u.arm()
	return u.freed
}

// arm has connections closed after a while, if there is need then. The caller
// holds mu.
func (u *unread) arm() {
	if u.relief == nil {
		u.relief = time.AfterFunc(u.patience, u.contained(u.relieve))
	}
}

// contained is f for a timer: a panic ends f alone.
func (u *unread) contained(f func()) func() {
	return contain.Func(f, contain.Log(u.log, "closing connections that do not read panicked"))
}

// fits reports whether a call may hold n more bytes. A message of any size goes
// while there is room at all. The caller holds mu.
func (o *outlet) fits(n int64) bool {
	u := o.of
	switch {
	case o.conn.closed:
		return true
	case u.most > 0 && u.held >= u.most:
		return false
	case o.conn.held+n <= share:
		return true
	case u.each > 0 && o.held >= u.each && o.held+n > share:
		return false
	}
	return u.most == 0 || u.held < u.common()
}

// relieve closes connections that have read nothing for too long, the worst
// first, until half of what may be held is free. Those that go on reading are
// left alone.
func (u *unread) relieve() {
	for _, c := range u.stalled() {
		u.log.Warn("connection closed: its client does not read, and others wait",
			zap.String("peer.address", c.RemoteAddr().String()))
		_ = c.Close() // it ends, whatever the network says
	}
}

// stalled lists the connections to close, and comes back while calls wait.
func (u *unread) stalled() []*connection {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.relief = nil
	if u.freed != nil || u.most > 0 && u.held > u.most {
		u.arm()
	}
	if u.most == 0 || u.held < u.common() {
		return nil
	}
	limit := time.Now().Add(-u.patience)
	since := make(map[*connection]time.Time)
	for c := range u.conns {
		if oldest := c.oldest(); !oldest.After(limit) {
			since[c] = oldest
		}
	}
	list := slices.SortedFunc(maps.Keys(since), func(a, b *connection) int { return since[a].Compare(since[b]) })
	left := u.held
	for i, c := range list {
		if left <= u.most/2 {
			return list[:i]
		}
		left -= c.holds()
	}
	return list
}

// oldest is since when a call of the connection waits for its client to read.
func (c *connection) oldest() time.Time {
	var oldest time.Time
	for o := range c.outlets {
		if oldest.IsZero() || o.since.Before(oldest) {
			oldest = o.since
		}
	}
	return oldest
}

// holds is how many bytes go when the connection is closed: of what others
// hold too, its part.
func (c *connection) holds() int64 {
	n := c.small
	for f, times := range c.frames {
		n += int64(len(f.bytes)) * int64(times) / int64(f.holders)
	}
	return n
}

// pack encodes an answer, and waits until there is room for it. So many bytes
// wait at most as are held; a client that leaves more unread is refused. The room is
// what the answer was made in: its bytes count here from now on.
func (o *outlet) pack(ctx context.Context, answer any, room *runtime.Room) (any, error) {
	m, ok := answer.(protobuf.Message)
	if !ok || o.of == nil {
		return answer, nil
	}
	f, err := encode(m)
	if err != nil {
		return nil, err
	}
	for {
		ok, freed := o.admit(f)
		if ok {
			return &parcel{frame: f, outlet: o, counted: f.isLarge()}, nil
		}
		if !o.of.queue(len(f.bytes)) {
			return nil, runtime.Errorf(ReasonSlowConsumer, "the server holds too many answers that clients have not read").
				Beyond("max-unread", o.of.most, 0)
		}
		room.End()
		select {
		case <-freed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		o.of.unqueue(len(f.bytes))
		if err != nil {
			return nil, err
		}
	}
}

func (u *unread) queue(n int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting+int64(n) > u.most && u.waiting > 0 {
		return false
	}
	u.waiting += int64(n)
	return true
}

func (u *unread) unqueue(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiting -= int64(n)
}

// parcel is a message on its way to the client of one call.
type parcel struct {
	*frame

	outlet  *outlet
	counted bool // since it was admitted
}

// Get is part of a pool of buffers, of which nothing is taken.
func (*parcel) Get(n int) *[]byte {
	bytes := make([]byte, n)
	return &bytes
}

// Put is told that gRPC has no more use for the bytes.
func (p *parcel) Put(*[]byte) { p.outlet.release(p.frame) }

// carry makes a parcel of a message, which may be encoded already.
func (o *outlet) carry(message any) (any, error) {
	if o.of == nil {
		return message, nil
	}
	switch m := message.(type) {
	case *frame:
		return &parcel{frame: m, outlet: o}, nil
	case protobuf.Message:
		f, err := encode(m)
		return &parcel{frame: f, outlet: o}, err
	}
	return message, nil
}

// connection is a client's, and knows what it has not read.
type connection struct {
	net.Conn

	of      *unread
	addr    *remoteAddr
	inbound *inbound             // what its client sends; nil = not counted
	outlets map[*outlet]struct{} // those that hold something; guarded by unread.mu, as is what follows
	held    int64                // bytes of all of them
	frames  map[*frame]int       // how often each is held, small ones left out
	small   int64                // bytes of those
	closed  bool
}

// RemoteAddr leads from the calls of a connection to itself.
func (c *connection) RemoteAddr() net.Addr { return c.addr }

type remoteAddr struct {
	net.Addr

	conn *connection
}

// Close ends the connection: nobody waits any more for what it holds.
func (c *connection) Close() error {
	u := c.of
	u.mu.Lock()
	if !c.closed {
		c.closed = true
		u.held -= c.small
		for f, times := range c.frames {
			if f.holders -= times; f.holders == 0 {
				u.held -= int64(len(f.bytes))
			}
		}
		c.outlets, c.frames = nil, nil
		delete(u.conns, c)
		u.wake()
	}
	u.mu.Unlock()
	return c.Conn.Close()
}

// counting is a listener whose connections are counted.
type counting struct {
	net.Listener

	of *unread
}

// Accept waits for a connection.
func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	known := &connection{Conn: c, of: l.of, outlets: make(map[*outlet]struct{}), frames: make(map[*frame]int)}
	known.addr = &remoteAddr{Addr: c.RemoteAddr(), conn: known}
	return known, nil
}

// newOutlet makes the outlet of a call.
func (u *unread) newOutlet(ctx context.Context) outlet {
	if p, ok := peer.FromContext(ctx); ok && u != nil {
		if addr, ok := p.Addr.(*remoteAddr); ok {
			return outlet{of: u, conn: addr.conn}
		}
	}
	return outlet{}
}
