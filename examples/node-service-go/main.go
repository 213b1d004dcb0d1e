// Command node-service-go is a pricing service whose methods are nodes of a
// graph: graphd calls them where quote.yaml says. It needs nothing of graphd
// but the generated code of its protos.
package main

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7801", "address to serve on, HOST:PORT")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serveNodes(ctx, *listen)
	stop()
	if err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

// serveNodes serves graphd until ctx ends. Then it reports that it is not healthy, so
// that graphd calls other services, and finishes the tasks that it has begun.
func serveNodes(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server, state := grpc.NewServer(), health.NewServer()
	graphdv1.RegisterNodeServiceServer(server, &pricing{prices: priceList()})
	healthpb.RegisterHealthServer(server, state)
	state.SetServingStatus(graphdv1.NodeService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	context.AfterFunc(ctx, func() {
		state.Shutdown()
		server.GracefulStop()
	})
	slog.Info("serving", "address", listener.Addr().String())
	return server.Serve(listener)
}
