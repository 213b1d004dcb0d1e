package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/graphd-dev/graphd/internal/contain"
)

// Options make a Facade. All fields but Callers must be set.
type Options struct {
	// Services are the services that are served, like those of graphdv1's files.
	Services []protoreflect.ServiceDescriptor
	// Listener is what the gRPC server accepts connections from.
	Listener *Listener
	// MaxMessageBytes bounds a request and an answer, MaxIncoming the memory of all requests that
	// have not been answered, and MaxUnread all answers that browsers have not read.
	MaxMessageBytes int
	MaxIncoming     int
	MaxUnread       int
	// StallTimeout is how long a browser may take no message of a stream.
	StallTimeout time.Duration
	// Callers say which parts of a request name its caller, besides its token.
	Callers CallerParts
	// OnPanic is told of a panic, which ends its request alone.
	OnPanic func(*contain.PanicError)
}

// Facade serves the methods of services over the Connect protocol.
type Facade struct {
	opts     Options
	methods  map[string]*method // by path
	incoming memory
	unread   memory
	conns    *connections
}

// method is a method that is served, with the types of its messages.
type method struct {
	path     string
	isStream bool
	in, out  protoreflect.MessageType
}

// New makes a Facade. The error names a message whose type the process does not have.
func New(o Options) (*Facade, error) {
	f := &Facade{
		opts: o, methods: map[string]*method{}, incoming: memory{most: int64(o.MaxIncoming)}, unread: memory{most: int64(o.MaxUnread)},
		conns: &connections{listener: o.Listener, maxMessageBytes: o.MaxMessageBytes, open: map[net.Conn]*connection{}},
	}
	for _, s := range o.Services {
		for i := range s.Methods().Len() {
			d := s.Methods().Get(i)
			m := &method{path: fmt.Sprintf("/%s/%s", s.FullName(), d.Name()), isStream: d.IsStreamingServer()}
			if d.IsStreamingClient() { // the body of a browser's request has an end
				continue
			}
			var err error
			if m.in, err = protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName()); err != nil {
				return nil, fmt.Errorf("web: input of %s: %w", m.path, err)
			}
			if m.out, err = protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName()); err != nil {
				return nil, fmt.Errorf("web: output of %s: %w", m.path, err)
			}
			f.methods[m.path] = m
		}
	}
	return f, nil
}

// AddConnection must be told of HTTP connections, as http.Server.ConnContext.
func (f *Facade) AddConnection(ctx context.Context, conn net.Conn) context.Context {
	return f.conns.addConnection(ctx, conn)
}

// TrackState must be told of the states of HTTP connections, as http.Server.ConnState.
func (f *Facade) TrackState(conn net.Conn, state http.ConnState) { f.conns.trackState(conn, state) }

// Serves reports whether a path is one of a method, or would be if there were such a method.
func (*Facade) Serves(path string) bool {
	service, _, isMethod := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return isMethod && strings.Contains(service, ".")
}

// ServeHTTP makes the call of a request.
func (f *Facade) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := contain.Call(func() { f.serveCall(w, r) }); p != nil {
		f.opts.OnPanic(p)
		failed := status.New(codes.Internal, "the server failed in this request")
		if strings.HasPrefix(w.Header().Get("Content-Type"), streamTypes) { // messages are sent already
			_, _ = w.Write(appendEnd(nil, failed)) // the browser has left
			return
		}
		writeError(w, failed.Err())
	}
}

func (f *Facade) serveCall(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store") // it is for this caller
	w.Header().Set("X-Content-Type-Options", "nosniff")
	m := f.methods[r.URL.Path]
	if m == nil {
		refuseMethod(w, r)
		return
	}
	if r.Method != http.MethodPost {
		refuseVerb(w, r)
		return
	}
	codec := findCodec(r, m.isStream)
	if codec == nil {
		refuseContentType(w, r, m.isStream)
		return
	}
	c := &call{method: m, codec: codec, w: w, r: r}
	c.endDeadline() // that of the server is for answers that it has at hand
	if m.isStream {
		f.serveStream(c)
		return
	}
	f.serveUnary(c)
}

// call is a request that is served.
type call struct {
	method *method
	codec  *messageCodec
	w      http.ResponseWriter
	r      *http.Request
}

func (f *Facade) serveUnary(c *call) {
	ctx, cancel, err := f.callContext(c.r)
	if err != nil {
		writeError(c.w, err)
		return
	}
	defer cancel()
	held := reserved{of: &f.incoming}
	defer held.release()
	in, err := f.readRequest(c, &held)
	if err != nil {
		writeError(c.w, err)
		return
	}
	conn, err := f.conns.openConnection(c.r)
	if err != nil {
		writeError(c.w, err)
		return
	}
	out := c.method.out.New().Interface()
	var head, tail metadata.MD
	err = conn.Invoke(ctx, c.method.path, in, out, grpc.Header(&head), grpc.Trailer(&tail))
	held.release()
	copyHeaders(c.w.Header(), "", head)
	copyHeaders(c.w.Header(), "Trailer-", tail)
	if err != nil {
		writeError(c.w, err)
		return
	}
	text, err := c.codec.appendTo(nil, out)
	if err != nil {
		writeError(c.w, err)
		return
	}
	unread := reserved{of: &f.unread}
	defer unread.release()
	if !unread.grow(int64(len(text))) {
		writeError(c.w, newUnreadError())
		return
	}
	c.w.Header().Set("Content-Type", c.codec.unaryType)
	c.writePart(text, f.opts.StallTimeout)
}

func (f *Facade) serveStream(c *call) {
	ctx, cancel, err := f.callContext(c.r)
	if err == nil {
		defer cancel()
		err = f.relayStream(ctx, c)
	}
	if ctx.Err() != nil && c.r.Context().Err() != nil {
		return // the browser has left
	}
	c.beginResponse(nil)
	if errors.Is(err, io.EOF) {
		c.writePart(appendEnd(nil, nil), f.opts.StallTimeout)
		return
	}
	c.writePart(appendEnd(nil, toStatus(err)), f.opts.StallTimeout)
}

// relayStream makes the call of a stream and writes its messages. The error is io.EOF after the
// last one.
func (f *Facade) relayStream(ctx context.Context, c *call) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a stream that is not read to its end
	stream, err := f.beginStream(ctx, c)
	if err != nil {
		return err
	}
	head, err := stream.Header()
	if err != nil {
		return err
	}
	c.beginResponse(head)
	for {
		if err := f.relayMessage(c, stream); err != nil {
			return err
		}
	}
}

// beginStream makes the call of a stream, whose request it reads.
func (f *Facade) beginStream(ctx context.Context, c *call) (grpc.ClientStream, error) {
	held := reserved{of: &f.incoming}
	defer held.release()
	in, err := f.readRequest(c, &held)
	if err != nil {
		return nil, err
	}
	conn, err := f.conns.openConnection(c.r)
	if err != nil {
		return nil, err
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, c.method.path)
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(in); err != nil && !errors.Is(err, io.EOF) { // after io.EOF, RecvMsg has the error
		return nil, err
	}
	return stream, stream.CloseSend()
}

// relayMessage writes the next message of a stream. The error is io.EOF after the last one.
func (f *Facade) relayMessage(c *call, stream grpc.ClientStream) error {
	out := c.method.out.New().Interface()
	if err := stream.RecvMsg(out); err != nil {
		return err
	}
	text, err := appendMessage(nil, c.codec, out)
	if err != nil {
		return err
	}
	unread := reserved{of: &f.unread}
	defer unread.release()
	if !unread.grow(int64(len(text))) {
		return newUnreadError()
	}
	if !c.writePart(text, f.opts.StallTimeout) {
		return context.Canceled
	}
	return nil
}
