package interceptor

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/transport/handshake"
)

// ProcessConn is the connection of the program that has the server in it. A unary call is one of the
// handler, behind the interceptors of every call, and does not pass HTTP/2. Streams, and calls that
// only gRPC can answer, take a connection in memory. It is safe for concurrent use.
type ProcessConn struct {
	grpc.ClientConnInterface // in memory

	interceptors *Interceptors
	chain        grpc.UnaryServerInterceptor
	from         *peer.Peer

	mu        sync.Mutex
	openCalls int
	isClosed  bool
	idle      chan struct{} // closed when isClosed and no call is open
	cutting   sync.Once
	cut       chan struct{} // closed when open calls are not waited for any more
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
	if _, ok := c.interceptors.unaryMethods[method]; !ok || needsConnection(options) {
		return c.ClientConnInterface.Invoke(ctx, method, args, reply, options...)
	}
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	headers, _ := metadata.FromOutgoingContext(ctx)
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
	if !c.beginCall() {
		return nil, errProcessConnClosed()
	}
	ctx, cancel := context.WithCancel(serverContext{ctx})
	defer cancel()
	ended := make(chan directAnswer, 1)
	go contain.Func(func() {
		defer c.endCall()
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
		return nil, errProcessConnClosed()
	}
}

// beginCall counts a call, and reports whether the connection is open.
func (c *ProcessConn) beginCall() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isClosed {
		c.openCalls++
	}
	return !c.isClosed
}

func (c *ProcessConn) endCall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.openCalls--; c.openCalls == 0 && c.isClosed {
		close(c.idle)
	}
}

// CloseCalls refuses further calls, and waits until those that are open have ended or were cut.
func (c *ProcessConn) CloseCalls() {
	if c == nil {
		return
	}
	c.refuseCalls()
	select {
	case <-c.idle:
	case <-c.cut:
	}
}

func (c *ProcessConn) refuseCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isClosed && c.openCalls == 0 {
		close(c.idle)
	}
	c.isClosed = true
}

// CutCalls ends the calls that are open. Their handlers learn it by their contexts.
func (c *ProcessConn) CutCalls() {
	if c != nil {
		c.cutting.Do(func() { close(c.cut) })
	}
}

func errProcessConnClosed() error {
	return status.Error(codes.Canceled, "the server in this process is closed")
}

// needsConnection reports whether a call has options that only a connection can serve.
func needsConnection(options []grpc.CallOption) bool {
	for _, o := range options {
		switch o.(type) {
		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption, grpc.StaticMethodCallOption,
			grpc.FailFastCallOption, grpc.MaxRecvMsgSizeCallOption, grpc.MaxSendMsgSizeCallOption:
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
			*o.HeaderAddr = s.header
		case grpc.TrailerCallOption:
			*o.TrailerAddr = s.trailer
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
