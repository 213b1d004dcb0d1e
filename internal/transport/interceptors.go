package transport

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// chain puts the interceptors in order, from the outside in: identify and
// count, log, convert errors, refuse what no version of the contract knows,
// recover. For a stream one of them stands for all but the last: each would
// wrap the stream again.
func chain(d *desk) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(d.unary, recovery.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(d.stream, recovery.StreamServerInterceptor()),
	}
}

// desk is where calls come in and go out.
type desk struct {
	mapper *mapper
	counts *counts // nil = not counted
	unread *unread
	log    *zap.Logger

	maxMessage int // bytes
	shapes     shapes
}

func (d *desk) unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (resp any, err error) {
	began, n := time.Now(), d.counts.method(info.FullMethod)
	n.begin()
	n.receive()
	ctx, c := newCall(ctx, d.unread)
	answerPlain(ctx)
	if grpc.SetHeader(ctx, metadata.Pairs(headerRequestID, c.id)) != nil {
		err = gone(ctx)
	} else if err = validate(req); err == nil {
		resp, err = handler(ctx, req)
	}
	if err == nil {
		resp, err = c.outlet.pack(ctx, resp, &c.room)
	}
	c.room.End()
	end, err := d.mapper.status(err, subject(ctx))
	if err == nil {
		n.send()
	}
	d.finish(ctx, n, info.FullMethod, kindUnary, began, err, end)
	return resp, err
}

func (d *desk) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	began, n := time.Now(), d.counts.method(info.FullMethod)
	n.begin()
	ctx, c := newCall(ss.Context(), d.unread)
	answerPlain(ctx)
	var err error
	if ss.SetHeader(metadata.Pairs(headerRequestID, c.id)) != nil {
		err = gone(ctx)
	} else {
		err = handler(srv, &attended{ServerStream: ss, ctx: ctx, count: n, outlet: &c.outlet, desk: d, request: requestOf(ctx)})
	}
	c.room.End()
	end, err := d.mapper.status(err, subject(ctx))
	d.finish(ctx, n, info.FullMethod, kindOf(info.IsClientStream, info.IsServerStream), began, err, end)
	return err
}

// answerPlain keeps gRPC from compressing answers to a client that compresses
// its requests: gRPC does not say when such an answer has been written, so what
// the client leaves unread could not be counted.
func answerPlain(ctx context.Context) {
	s, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if ok && s.RecvCompress() != "" {
		_ = grpc.SetSendCompressor(ctx, encoding.Identity) // it fails when the call is over
	}
}

// finish counts and logs a call that is over: one line tells all of it.
func (d *desk) finish(ctx context.Context, n *method, name, kind string, began time.Time, err error, end ending) {
	took, code := time.Since(began), status.Code(err)
	n.end(code, took)
	level := end.level
	if level == zapcore.InfoLevel && isProbe(name) {
		level = zapcore.DebugLevel
	}
	entry := d.log.Check(level, "finished call")
	if entry == nil {
		return
	}
	service, call := splitMethod(name)
	fields := append(callFields(ctx),
		zap.String("protocol", "grpc"), zap.String("grpc.service", service), zap.String("grpc.method", call),
		zap.String("grpc.method_type", kind), zap.String("grpc.start_time", began.Format(time.RFC3339)),
		zap.String("grpc.code", code.String()),
		zap.String("grpc.time_ms", strconv.FormatFloat(float64(took.Microseconds())/1e3, 'f', -1, 64)),
	)
	if p, ok := peer.FromContext(ctx); ok {
		fields = append(fields, zap.String("peer.address", p.Addr.String()))
	}
	if deadline, ok := ctx.Deadline(); ok {
		fields = append(fields, zap.String("grpc.request.deadline", deadline.Format(time.RFC3339)))
	}
	if err != nil {
		fields = append(fields, zap.String("grpc.error", err.Error()))
	}
	entry.Write(append(fields, end.fields...)...)
}

// isProbe reports whether a call only asks whether the server is there: one comes
// every few seconds, and says nothing as long as it goes well.
func isProbe(method string) bool { return strings.HasPrefix(method, "/grpc.health.v1.Health/") }

// The kinds of calls, as logs and metrics name them.
const (
	kindUnary        = "unary"
	kindClientStream = "client_stream"
	kindServerStream = "server_stream"
	kindBidiStream   = "bidi_stream"
)

func kindOf(client, server bool) string {
	switch {
	case client && server:
		return kindBidiStream
	case client:
		return kindClientStream
	case server:
		return kindServerStream
	default:
		return kindUnary
	}
}

// splitMethod takes "/service/method" apart.
func splitMethod(name string) (service, call string) {
	name = strings.TrimPrefix(name, "/")
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		return name[:at], name[at+1:]
	}
	return "unknown", name
}

// attended is a stream whose context knows the call, whose messages are
// counted, and which refuses what a client may not send.
type attended struct {
	grpc.ServerStream

	ctx     context.Context
	count   *method
	outlet  *outlet
	desk    *desk
	request *request // what the client has sent, nil = nobody counts
	sent    bool
}

// Context returns the context with the call's record.
func (s *attended) Context() context.Context { return s.ctx }

// SendMsg sends a message.
func (s *attended) SendMsg(m any) error {
	if !s.sent { // the request has been looked at
		s.sent = true
		s.request.answered()
	}
	m, err := s.outlet.carry(m)
	if err != nil {
		return err
	}
	if err = s.ServerStream.SendMsg(m); err == nil {
		s.count.send()
	}
	return err
}

// RecvMsg receives and checks a message.
func (s *attended) RecvMsg(m any) error {
	s.request.done()
	if err := s.desk.receive(s.ctx, m, s.ServerStream.RecvMsg); err != nil {
		return err
	}
	s.count.receive()
	return validate(m)
}

// validate checks what holds for every message of the contract, whoever the
// receiver is.
func validate(req any) error {
	msg, ok := req.(proto.Message)
	if !ok {
		return runtime.Errorf(runtime.ReasonInternal, "%T is no message", req)
	}
	if !strings.HasPrefix(string(msg.ProtoReflect().Descriptor().FullName()), "graphd.") {
		return nil
	}
	b := &border{}
	refuseUnknownEnums(b, "", msg.ProtoReflect())
	return b.err()
}
