package interceptor

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/stack"
	"github.com/graphd-dev/graphd/internal/transport/handshake"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// ProcessConn is the connection of the program that has the server in it. A unary call is one of the
// handler, behind the interceptors of every call, and does not pass HTTP/2. Streams, and calls that
// only gRPC can answer, take a connection in memory. It is safe for concurrent use.
type ProcessConn struct {
	grpc.ClientConnInterface // in memory

	interceptors *Interceptors
	chain        grpc.UnaryServerInterceptor
	from         *peer.Peer

	mu         sync.Mutex
	openCalls  int
	isDraining bool          // takes no further calls
	isClosed   bool          // and has said so for good
	idle       chan struct{} // closed when isDraining and no call is open
	cutting    sync.Once
	cut        chan struct{} // closed when clients do not wait for open calls any more
}

// NewProcessConn makes the connection of the program, with one in memory for what is not unary.
func (i *Interceptors) NewProcessConn(inMemory grpc.ClientConnInterface) *ProcessConn {
	return &ProcessConn{
		ClientConnInterface: inMemory, interceptors: i, chain: chainUnary(i.unaryInterceptors()),
		from: &peer.Peer{Addr: processAddr{}, AuthInfo: handshake.NewProcessInfo()},
		idle: make(chan struct{}), cut: make(chan struct{}),
	}
}

// Invoke makes a call. The error is a gRPC status. As over a connection, the caller does not wait for
// a handler when ctx has ended, and the handler sees no values of ctx but the outgoing metadata.
func (c *ProcessConn) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	headers, _ := metadata.FromOutgoingContext(ctx)
	if _, ok := c.interceptors.unaryMethods[method]; !ok || needsConnection(options) || !isPlain(headers) {
		return c.ClientConnInterface.Invoke(ctx, method, args, reply, options...)
	}
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	call, err := c.interceptors.newDirectCall(method, c.from, headers, args)
	if err != nil {
		return err
	}
	answer, err := c.awaitAnswer(ctx, call, options)
	if err != nil {
		return err
	}
	return call.copyAnswer(reply, answer)
}

// directAnswer is how a call has ended.
type directAnswer struct {
	message any
	err     error // a status
}

func (c *ProcessConn) awaitAnswer(ctx context.Context, call *directCall, options []grpc.CallOption) (any, error) {
	if err := c.beginCall(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(serverContext{ctx})
	defer cancel()
	ended := make(chan directAnswer, 1)
	go contain.Func(func() {
		defer c.endCall()
		stack.Grow()
		message, err := call.serveCall(ctx, c.chain)
		ended <- directAnswer{message, err}
	}, func(p *contain.PanicError) {
		c.interceptors.log.Error("a call panicked", p.Fields()...)
		ended <- directAnswer{nil, status.Error(codes.Internal, "internal error")}
	})()
	select {
	case a := <-ended:
		call.stream.fillOptions(options, c.from)
		return a.message, a.err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-c.cut:
		return nil, errDraining()
	}
}

// beginCall counts a call. The error is a status: that of a server that is drained, for which clients
// call again, or that of one that is closed.
func (c *ProcessConn) beginCall() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.isClosed:
		return status.Error(codes.Canceled, "the server in this process is closed")
	case c.isDraining:
		return errDraining()
	}
	c.openCalls++
	return nil
}

func (c *ProcessConn) endCall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.openCalls--; c.openCalls == 0 && c.isDraining {
		close(c.idle)
	}
}

// cutPatience is how long handlers may take that were cut, to end with their contexts.
const cutPatience = time.Second

// RefuseCalls refuses further calls. nil has none.
func (c *ProcessConn) RefuseCalls() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isDraining && c.openCalls == 0 {
		close(c.idle)
	}
	c.isDraining = true
}

// AwaitCalls waits until the calls that are open have ended, after RefuseCalls. Handlers that were cut
// have cutPatience.
func (c *ProcessConn) AwaitCalls() {
	if c == nil {
		return
	}
	select {
	case <-c.idle:
		return
	case <-c.cut:
	}
	patience := time.NewTimer(cutPatience)
	defer patience.Stop()
	select {
	case <-c.idle:
	case <-patience.C:
	}
}

// CutCalls ends the calls that are open, and refuses further ones. Handlers learn it by their
// contexts.
func (c *ProcessConn) CutCalls() {
	if c != nil {
		c.RefuseCalls()
		c.cutting.Do(func() { close(c.cut) })
	}
}

// Close has calls fail for good: clients do not call again.
func (c *ProcessConn) Close() {
	if c != nil {
		c.RefuseCalls()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.isClosed = true
	}
}

// errDraining refuses a call of a server that goes down.
func errDraining() error {
	return reason.BuildStatus(codes.Unavailable, runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down"), nil)
}

// isPlain reports whether a connection would take metadata as it is. It refuses other metadata, and
// tells why.
func isPlain(md metadata.MD) bool {
	size := 0
	for key, values := range md {
		for _, value := range values {
			size += len(key) + len(value)
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
				return false
			}
		}
		isName := strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
		if !isName || strings.HasPrefix(key, "grpc-") || strings.HasSuffix(key, "-bin") {
			return false
		}
	}
	return size <= plainBytes
}

// plainBytes is less than any connection takes of metadata.
const plainBytes = 4 << 10

// needsConnection reports whether a call has options that only a connection can serve.
func needsConnection(options []grpc.CallOption) bool {
	for _, o := range options {
		switch o.(type) {
		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption, grpc.StaticMethodCallOption, grpc.FailFastCallOption:
		default:
			return true
		}
	}
	return false
}

// fillOptions fills the options by which a client asks for headers.
func (s *directStream) fillOptions(options []grpc.CallOption, from *peer.Peer) {
	for _, o := range options {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = metadata.Join(s.header)
		case grpc.TrailerCallOption:
			*o.TrailerAddr = metadata.Join(s.trailer)
		case grpc.PeerCallOption:
			*o.PeerAddr = *from
		}
	}
}

// serverContext is the context of a call in the server. It ends when that of the client does, and
// has none of its values.
type serverContext struct{ context.Context }

// Value returns nothing.
func (serverContext) Value(any) any { return nil }

// AfterFunc has a context that is made of this one end without a goroutine for it.
func (c serverContext) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(c.Context, contain.Func(f, func(*contain.PanicError) {})) // f is of package context
}

// processAddr is the address of the program that has the server in it.
type processAddr struct{}

// Network names the kind of the address.
func (processAddr) Network() string { return "process" }

// String returns the address.
func (processAddr) String() string { return "process" }
