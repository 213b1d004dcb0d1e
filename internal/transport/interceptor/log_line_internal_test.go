package interceptor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

const streamedMessages = 100

// cheapService answers at once, so that the cost around a call is measured.
type cheapService struct {
	graphdv1.UnimplementedGraphServiceServer
}

func (cheapService) GetRun(context.Context, *graphdv1.GetRunRequest) (*graphdv1.Run, error) {
	return &graphdv1.Run{RunId: "r"}, nil
}

func (cheapService) Watch(_ *graphdv1.WatchRequest, s grpc.ServerStreamingServer[graphdv1.Event]) error {
	for range streamedMessages {
		if err := s.Send(&graphdv1.Event{}); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkLogLine compares the log line of interceptors with that of
// go-grpc-middleware, on calls whose service does nothing.
func BenchmarkLogLine(b *testing.B) {
	for _, level := range []zapcore.Level{zapcore.InfoLevel, zapcore.ErrorLevel} {
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard), level))
		for _, by := range []struct {
			name    string
			options func() []grpc.ServerOption
		}{
			{"own", func() []grpc.ServerOption { return newBenchInterceptors(log).ServerOptions() }},
			{"library", func() []grpc.ServerOption { return libraryOptions(newBenchInterceptors(zap.NewNop()), log) }},
		} {
			b.Run(fmt.Sprintf("call=unary/level=%s/by=%s", level, by.name), func(b *testing.B) {
				client := dialCheapService(b, by.options()...)
				measureCPU(b, func() {
					_, err := client.GetRun(b.Context(), &graphdv1.GetRunRequest{ThreadId: "t", RunId: "r"})
					require.NoError(b, err)
				})
			})
			b.Run(fmt.Sprintf("call=stream/level=%s/by=%s", level, by.name), func(b *testing.B) {
				client := dialCheapService(b, by.options()...)
				measureCPU(b, func() {
					s, err := client.Watch(b.Context(), &graphdv1.WatchRequest{ThreadId: "t"})
					for err == nil {
						_, err = s.Recv()
					}
					if !errors.Is(err, io.EOF) {
						require.NoError(b, err)
					}
				})
			})
		}
	}
}

func newBenchInterceptors(log *zap.Logger) *Interceptors {
	return New(reason.NewMapper(nil), flow.NewUnreadTracker(0, 0, 0, log), nil, 8<<20, log)
}

// libraryOptions returns options with the log of the library and none of the
// interceptors.
func libraryOptions(d *Interceptors, log *zap.Logger) []grpc.ServerOption {
	logger := logging.LoggerFunc(func(ctx context.Context, _ logging.Level, msg string, fields ...any) {
		entry := log.Check(zapcore.InfoLevel, msg)
		if entry == nil {
			return
		}
		list := make([]zap.Field, 0, len(fields)/2+4)
		list = append(list, CallLogFields(ctx)...)
		for i := 0; i+1 < len(fields); i += 2 {
			key, _ := fields[i].(string)
			value, _ := fields[i+1].(string)
			list = append(list, zap.String(key, value))
		}
		entry.Write(list...)
	})
	options := []logging.Option{
		logging.WithLogOnEvents(logging.FinishCall), logging.WithDisableLoggingFields(logging.ComponentFieldKey),
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(d.interceptUnary, logging.UnaryServerInterceptor(logger, options...), recovery.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(d.interceptStream, logging.StreamServerInterceptor(logger, options...), recovery.StreamServerInterceptor()),
	}
}

func dialCheapService(b *testing.B, options ...grpc.ServerOption) graphdv1.GraphServiceClient {
	b.Helper()
	s := grpc.NewServer(append(options, grpc.ForceServerCodecV2(flow.NewCodec()))...)
	graphdv1.RegisterGraphServiceServer(s, cheapService{})
	l := bufconn.Listen(1 << 20)
	go func() { _ = s.Serve(l) }()
	b.Cleanup(s.Stop)
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, conn.Close()) })
	return graphdv1.NewGraphServiceClient(conn)
}

// measureCPU repeats a call, and reports the CPU time beside the time of the clock,
// which other processes disturb.
func measureCPU(b *testing.B, call func()) {
	b.Helper()
	b.ReportAllocs()
	call()
	before := processorTime(b)
	for b.Loop() {
		call()
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func processorTime(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}
