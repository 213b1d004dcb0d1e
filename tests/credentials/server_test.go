// Package credentials_test gives a server 1,000 credentials that are wrong. All are
// refused, with a reason that clients may know, and none shows up anywhere.
package credentials_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/server"
)

const (
	tokenIssuer   = "https://issuer.example.org"
	tokenAudience = "graphd"
)

// rulesText names the callers of some certificates.
const rulesText = `rules:
- uri: spiffe://example.org/ns/workers/*
  name: worker:$1
- uri: spiffe://example.org/admin
  name: root
- dns: "*.clients.example.org"
  name: $1
- dns: build.example.org
  name: build
- cn: alice
  name: alice
- cn: old-*
  name: old $1
`

// testServer is a whole server in this process, which wants a client certificate for
// each connection and knows callers by certificates, JWTs and API keys.
type testServer struct {
	*server.Server

	logs  *observer.ObservedLogs
	audit string // file
	drain func() // once
}

// startServer starts a server with the keys and the CA of a forger.
func startServer(t testing.TB, f *forger) *testServer {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	cert, key := f.ca.encodePair(t, f.issueServer())
	s := &testServer{audit: filepath.Join(dir, "audit.jsonl")}
	var o server.Options
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.RegisterFlags(flags)
	require.NoError(t, flags.Parse([]string{
		"--listen", "127.0.0.1:0", "--store", "memory", "--metrics", "127.0.0.1:0", "--audit", "file:" + s.audit,
		"--tls-cert", file("server.pem", cert), "--tls-key", file("server-key.pem", key), "--tls-client-ca", file("ca.pem", f.ca.encode()),
		"--api-keys", f.keyFile, "--certificate-rules", file("rules.yaml", rulesText),
		"--token-issuers", file("issuers.yaml", fmt.Sprintf(
			"issuers:\n- issuer: %s\n  audiences: [%s]\n  jwks_file: %s\n  claims: { groups: groups, tenant: org, roles: realm.roles }\n",
			tokenIssuer, tokenAudience, file("jwks.json", f.publicKeys()))),
	}))
	core, logs := observer.New(zap.DebugLevel)
	s.logs = logs
	var err error
	s.Server, err = server.NewServer(t.Context(), o, zap.New(core), "test")
	require.NoError(t, err)
	s.StartServing()
	s.drain = sync.OnceFunc(func() { require.NoError(t, s.DrainServer(context.WithoutCancel(t.Context()))) })
	t.Cleanup(s.drain)
	return s
}

// dial makes a connection of its own with a certificate, nil = none.
func (s *testServer) dial(t testing.TB, f *forger, shown *tls.Certificate) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.Address(), grpc.WithTransportCredentials(credentials.NewTLS(f.clientConfig(shown))))
	require.NoError(t, err)
	return conn
}

// The methods of calls. The audit has the calls of the first one, and the second is for
// every caller.
const (
	auditedMethod = graphdv1.ThreadService_CreateThread_FullMethodName
	freeMethod    = graphdv1.RegistryService_GetServerInfo_FullMethodName
)

// call makes a call with an empty request, and with each value as an authorization header.
func call(ctx context.Context, conn *grpc.ClientConn, method string, headers ...string) error {
	md := metadata.MD{}
	for _, value := range headers {
		md.Append("authorization", value)
	}
	return conn.Invoke(metadata.NewOutgoingContext(ctx, md), method, &emptypb.Empty{}, &emptypb.Empty{})
}

// takeLog returns all that was logged since the last time, as text.
func (s *testServer) takeLog() string {
	var b strings.Builder
	for _, entry := range s.logs.TakeAll() {
		fmt.Fprintln(&b, entry.Level, entry.LoggerName, entry.Message, entry.ContextMap())
	}
	return b.String()
}

// countHandshakes returns the number of failed handshakes by reason.
func (s *testServer) countHandshakes(t testing.TB) map[string]int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.MetricsAddress()+"/metrics", http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	counts := make(map[string]int)
	for _, found := range regexp.MustCompile(`graphd_tls_handshakes_failed_total\{reason="(\w+)"\} (\d+)`).FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(found[2]))
		require.NoError(t, err)
		counts[string(found[1])] = n
	}
	return counts
}
