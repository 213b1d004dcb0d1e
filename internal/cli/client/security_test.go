package client_test

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd/internal/cli/certs"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// startHealthServer serves the health service on a loopback port, and returns its
// address and the header of the newest call.
func startHealthServer(t *testing.T, options ...grpc.ServerOption) (address string, tokens chan []string) {
	t.Helper()
	tokens = make(chan []string, 1)
	record := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		tokens <- metadata.ValueFromIncomingContext(ctx, "authorization")
		return handle(ctx, req)
	}
	server := grpc.NewServer(append(options, grpc.UnaryInterceptor(record))...)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return listener.Addr().String(), tokens
}

func TestTokensAreSentWithEachCall(t *testing.T) {
	made, err := certs.WriteCertificates(certs.Request{Dir: t.TempDir(), Days: 1, Now: time.Now()})
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(made.Server.Cert, made.Server.Key)
	require.NoError(t, err)
	plain, plainTokens := startHealthServer(t)
	secure, secureTokens := startHealthServer(t, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	for name, test := range map[string]struct {
		address  string
		tokens   chan []string
		security client.Security
		want     []string
	}{
		"loopback":  {plain, plainTokens, client.Security{Token: "t0-ken"}, []string{"Bearer t0-ken"}},
		"TLS":       {secure, secureTokens, client.Security{CA: made.CA, Token: "t0-ken"}, []string{"Bearer t0-ken"}},
		"no token":  {plain, plainTokens, client.Security{}, nil},
		"TLS alone": {secure, secureTokens, client.Security{CA: made.CA}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := client.DialServer(test.address, test.security)
			require.NoError(t, err)
			_, err = c.Health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			require.NoError(t, err)
			require.Equal(t, test.want, <-test.tokens)
			require.NoError(t, c.Close())
		})
	}
}

func TestTokensAreNotSentToOthersInPlainText(t *testing.T) {
	for target, sent := range map[string]bool{
		"127.0.0.1:7700": true, "127.9.9.9:1": true, "localhost:7700": true, "[::1]:7700": true, "dns:///localhost:7700": true,
		"unix:/run/graphd": true, "passthrough:///127.0.0.1:1": true,
		"10.0.0.5:7700": false, "graphd.internal:7700": false, "localhost.example.org:7700": false, "[2001:db8::1]:7700": false,
		"dns://10.0.0.1/localhost:7700": false, "0.0.0.0:7700": false, "127.0.0.1.example.org:7700": false,
	} {
		c, err := client.DialServer(target, client.Security{Token: "t0-ken"})
		if sent {
			require.NoError(t, err, target)
			require.NoError(t, c.Close())
			continue
		}
		var usage *exit.UsageError
		require.ErrorAs(t, err, &usage, target)
		require.Contains(t, usage.Message, "plain text")
		require.Contains(t, usage.Hint, "--tls-ca")
		require.NotContains(t, usage.Message+usage.Hint, "t0-ken")
		c, err = client.DialServer(target, client.Security{Token: "t0-ken", SystemRoots: true})
		require.NoError(t, err, target)
		require.NoError(t, c.Close())
	}
}

func TestWrongSecurityIsRefused(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for name, test := range map[string]struct {
		security client.Security
		says     string
	}{
		"no key":         {client.Security{Cert: "a.pem"}, "belong together"},
		"no certificate": {client.Security{Key: "a.pem"}, "belong together"},
		"no CA":          {client.Security{CA: missing}, "--tls-ca " + missing + ": no such file"},
		"no files":       {client.Security{Cert: missing, Key: missing}, "--tls-cert " + missing + ": no such file"},
		"line break":     {client.Security{Token: "t0-ken\n"}, "--token has a space"},
		"large":          {client.Security{Token: strings.Repeat("e", 16<<10+1)}, "--token has 16385 bytes"},
		"letter":         {client.Security{Token: "t0-kén"}, "a character that a header can't carry"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.DialServer("127.0.0.1:7700", test.security)
			var usage *exit.UsageError
			require.ErrorAs(t, err, &usage)
			require.Contains(t, usage.Message, test.says)
			require.NotContains(t, usage.Message, "t0-k")
			require.NotEmpty(t, usage.Hint)
		})
	}
}
