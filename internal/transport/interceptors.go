package transport

import (
	"context"
	"fmt"
	"strings"

	prommw "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// chain puts the interceptors in order, from the outside in: identify, count,
// log, convert errors, refuse what no version of the contract knows, recover.
func chain(m *mapper, metrics *prommw.ServerMetrics, log *zap.Logger) []grpc.ServerOption {
	unary := []grpc.UnaryServerInterceptor{identifyUnary}
	stream := []grpc.StreamServerInterceptor{identifyStream}
	if metrics != nil {
		unary = append(unary, metrics.UnaryServerInterceptor())
		stream = append(stream, metrics.StreamServerInterceptor())
	}
	options := []logging.Option{
		logging.WithLogOnEvents(logging.FinishCall),
		logging.WithDisableLoggingFields(logging.SystemTag[0], logging.ComponentFieldKey),
	}
	unary = append(unary,
		logging.UnaryServerInterceptor(zapLogger(log), options...),
		m.unary, validateUnary, recovery.UnaryServerInterceptor())
	stream = append(stream,
		logging.StreamServerInterceptor(zapLogger(log), options...),
		m.stream, validateStream, recovery.StreamServerInterceptor())
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary...), grpc.ChainStreamInterceptor(stream...)}
}

func identifyUnary(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	ctx, c := newCall(ctx)
	if err := grpc.SetHeader(ctx, metadata.Pairs(headerRequestID, c.id)); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func identifyStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, c := newCall(ss.Context())
	if err := ss.SetHeader(metadata.Pairs(headerRequestID, c.id)); err != nil {
		return err
	}
	return handler(srv, &identified{ServerStream: ss, ctx: ctx})
}

// identified is a stream whose context knows the call.
type identified struct {
	grpc.ServerStream

	ctx context.Context
}

// Context returns the context with the call's record.
func (s *identified) Context() context.Context { return s.ctx }

func (m *mapper) unary(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	resp, err := handler(ctx, req)
	return resp, m.status(ctx, err, subject(ctx))
}

func (m *mapper) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return m.status(ss.Context(), handler(srv, ss), subject(ss.Context()))
}

func validateUnary(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if err := validate(req); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func validateStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, &validated{ServerStream: ss})
}

// validated is a stream that refuses what a client may not send.
type validated struct {
	grpc.ServerStream
}

// RecvMsg receives and checks a message.
func (s *validated) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
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

// zapLogger adapts zap. Fields come as alternating keys and values.
func zapLogger(log *zap.Logger) logging.Logger {
	return logging.LoggerFunc(func(ctx context.Context, level logging.Level, msg string, fields ...any) {
		list := callFields(ctx)
		for i := 0; i+1 < len(fields); i += 2 {
			list = append(list, zap.Any(fmt.Sprint(fields[i]), fields[i+1]))
		}
		switch {
		case level >= logging.LevelError:
			log.Error(msg, list...)
		case level >= logging.LevelWarn:
			log.Warn(msg, list...)
		case level >= logging.LevelInfo:
			log.Info(msg, list...)
		default:
			log.Debug(msg, list...)
		}
	})
}
