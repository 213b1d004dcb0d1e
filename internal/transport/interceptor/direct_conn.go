package interceptor

import (
	"context"
	"crypto/tls"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/stack"
	"github.com/graphd-dev/graphd/internal/transport/handshake"
)

// DirectConn is a connection inside the process: that of the program that has the server in it, or
// that of a client of another door. A unary call is one of the handler, behind the interceptors of
// every call, and does not pass HTTP/2. Streams, and calls that only gRPC can answer, take a
// connection in memory. It is safe for concurrent use.
type DirectConn struct {
	grpc.ClientConnInterface // in memory

	interceptors *Interceptors
	chain        grpc.UnaryServerInterceptor
	from         *peer.Peer
	bounds       *directBounds // nil = the calls are not bounded
}

// NewProcessConn makes the connection of the program, with one in memory for what is not unary.
func (i *Interceptors) NewProcessConn(inMemory grpc.ClientConnInterface) *DirectConn {
	return i.newDirectConn(inMemory, &peer.Peer{Addr: processAddr{}, AuthInfo: handshake.NewProcessInfo()}, nil)
}

// NewRelayedConn makes the connection of a client of another door, with one in memory for what is not
// unary. The bounds of calls and requests over connections hold for its calls.
func (i *Interceptors) NewRelayedConn(client net.Addr, secured *tls.ConnectionState, inMemory grpc.ClientConnInterface) *DirectConn {
	from := &peer.Peer{Addr: client, AuthInfo: handshake.NewRelayedInfo(secured)}
	return i.newDirectConn(inMemory, from, &directBounds{requests: i.requests, most: i.maxMessageBytes + answerHeadroom})
}

func (i *Interceptors) newDirectConn(inMemory grpc.ClientConnInterface, from *peer.Peer, bounds *directBounds) *DirectConn {
	return &DirectConn{ClientConnInterface: inMemory, interceptors: i, chain: chainUnary(i.unaryInterceptors()), from: from, bounds: bounds}
}

// Invoke makes a call. The error is a gRPC status. As over a connection, the caller does not wait for
// a handler when ctx has ended, and the handler sees no values of ctx but the outgoing metadata.
func (c *DirectConn) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	ctx = c.interceptors.withCallerTrace(ctx)
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

// NewStream makes a call with a stream, over the connection in memory.
func (c *DirectConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(c.interceptors.withCallerTrace(ctx), desc, method, options...)
}

// directAnswer is how a call has ended.
type directAnswer struct {
	message any
	err     error // a status
}

func (c *DirectConn) awaitAnswer(ctx context.Context, call *directCall, options []grpc.CallOption) (any, error) {
	gate := c.interceptors.directCalls
	if err := gate.beginCall(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(serverContext{ctx})
	defer cancel()
	ctx, release, err := c.bounds.admitCall(ctx, call.request.Len())
	if err != nil {
		gate.endCall()
		return nil, err
	}
	ended := make(chan directAnswer, 1)
	go contain.Func(func() {
		defer gate.endCall()
		defer release()
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
		return a.message, c.bounds.checkAnswer(a)
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-gate.cut:
		return nil, errDraining()
	}
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
