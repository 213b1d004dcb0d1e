package client

import (
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	api "github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// DefaultServer is the address of a server without --listen.
const DefaultServer = "127.0.0.1:7700"

// Client calls one server.
type Client struct {
	Target     string
	Graphs     graphdv1.GraphServiceClient
	Threads    graphdv1.ThreadServiceClient
	Interrupts graphdv1.InterruptServiceClient
	Registry   graphdv1.RegistryServiceClient
	Crons      graphdv1.CronServiceClient
	Health     grpc_health_v1.HealthClient

	conn *grpc.ClientConn
}

// A server may allow larger messages than gRPC's 4 MiB. Pings, which the server
// permits, detect a dead connection.
const (
	maxMessageBytes  = 64 << 20
	keepaliveTime    = 20 * time.Second
	keepaliveTimeout = 10 * time.Second
)

// checkTarget returns an *exit.UsageError for an address that no server can have.
func checkTarget(target string) error {
	if strings.Contains(target, ",") || strings.HasPrefix(target, "ipv4:") || strings.HasPrefix(target, "ipv6:") {
		return exit.Usagef("--server %s is a list of addresses, which only workers in Python take", target).
			WithHint("want one of them, like %s, or a name with all of them, like dns:///graphd.internal:7700", DefaultServer)
	}
	if scheme, _, _ := strings.Cut(target, "://"); slices.Contains([]string{"http", "https", "grpc", "redis", "rediss"}, scheme) {
		return exit.Usagef("--server %s:// is no address of a server", scheme).WithHint("want HOST:PORT, like %s", DefaultServer)
	}
	if refused, ok := errors.AsType[*api.AddressError](api.CheckAddress(target)); ok {
		return exit.Usagef("--server %s %s", target, refused.Reason).WithHint("want HOST:PORT, like %s", DefaultServer)
	}
	return nil
}

// CheckCall returns an *exit.UsageError, which never has the token, when a server
// can't be called like this. It reads the files of TLS and calls no server.
func CheckCall(target string, security Security) error {
	c, err := DialServer(target, security)
	if err != nil {
		return err
	}
	return c.Close()
}

// DialServer makes a client, which connects with the first call. more are options
// for tests. The error is an *exit.UsageError, which never has the token.
func DialServer(target string, security Security, more ...grpc.DialOption) (*Client, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	options, err := security.dialOptions(target)
	if err != nil {
		return nil, err
	}
	options = append(options,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
	conn, err := grpc.NewClient(target, append(options, more...)...)
	if err != nil {
		return nil, exit.Usagef("--server %s: %v", target, err).WithHint("want HOST:PORT, like %s", DefaultServer)
	}
	return &Client{
		Target: target, conn: conn,
		Graphs:     graphdv1.NewGraphServiceClient(conn),
		Threads:    graphdv1.NewThreadServiceClient(conn),
		Interrupts: graphdv1.NewInterruptServiceClient(conn),
		Registry:   graphdv1.NewRegistryServiceClient(conn),
		Crons:      graphdv1.NewCronServiceClient(conn),
		Health:     grpc_health_v1.NewHealthClient(conn),
	}, nil
}

// Close ends the connection. Errors: those of gRPC.
func (c *Client) Close() error { return c.conn.Close() }
