package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// secureEndpoint is a node service that demands certificates of its clients.
type secureEndpoint struct {
	graphdv1.UnimplementedNodeServiceServer

	address  string
	clientCA atomic.Pointer[x509.CertPool]
	callers  chan string // common names of the certificates that have called

	mu    sync.Mutex
	conns []net.Conn // that were accepted
}

// recordingListener gives an endpoint the connections that it accepts.
type recordingListener struct {
	net.Listener

	to *secureEndpoint
}

func (r recordingListener) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	if err == nil {
		r.to.mu.Lock()
		defer r.to.mu.Unlock()
		r.to.conns = append(r.to.conns, conn)
	}
	return conn, err
}

// endConnections closes all connections so far.
func (e *secureEndpoint) endConnections() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, conn := range e.conns {
		_ = conn.Close()
	}
	e.conns = nil
}

// startSecureEndpoint serves with the files that a function names, and asks for
// certificates of a CA.
func startSecureEndpoint(t *testing.T, file func(name string) string, clientCA string) *secureEndpoint {
	t.Helper()
	own, err := tls.LoadX509KeyPair(file("server.pem"), file("server-key.pem"))
	require.NoError(t, err)
	e := &secureEndpoint{callers: make(chan string, 10)}
	e.acceptClientsOf(t, clientCA)
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, NextProtos: []string{"h2"},
			ClientCAs: e.clientCA.Load(), ClientAuth: tls.RequireAndVerifyClientCert,
		}, nil
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e.address = l.Addr().String()
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	graphdv1.RegisterNodeServiceServer(s, e)
	go func() { _ = s.Serve(recordingListener{l, e}) }()
	t.Cleanup(s.Stop)
	return e
}

// acceptClientsOf replaces the CA of clients.
func (e *secureEndpoint) acceptClientsOf(t *testing.T, ca string) {
	t.Helper()
	text, err := os.ReadFile(ca)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	e.clientCA.Store(pool)
}

// ExecuteTask tells who has called.
func (e *secureEndpoint) ExecuteTask(_ *graphdv1.ExecuteTaskRequest, stream graphdv1.NodeService_ExecuteTaskServer) error {
	from, _ := peer.FromContext(stream.Context())
	info, _ := from.AuthInfo.(credentials.TLSInfo)
	e.callers <- info.State.PeerCertificates[0].Subject.CommonName
	return stream.Send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{
		Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{}},
	}}})
}

func secureGraph(address string) string {
	return fmt.Sprintf("graph: g\nchannels: { x: {} }\nnodes:\n  n: { remote: { endpoint: %q, tls: true } }\nedges: [START -> n -> END]\n", address)
}

// waitForUnassigned returns why a task of a thread waits.
func (s *limitedServer) waitForUnassigned(thread string) string {
	stream, err := s.client.Watch(s.t.Context(), &graphdv1.WatchRequest{ThreadId: thread, Follow: true})
	require.NoError(s.t, err)
	for {
		e, err := stream.Recv()
		require.NoError(s.t, err)
		if e.GetTask().GetPhase() == graphdv1.TaskChange_PHASE_UNASSIGNED {
			return e.GetTask().GetFailure().GetMessage()
		}
	}
}

// An endpoint that wants a certificate gets the one of the server's options, whatever a
// graph says.
func TestEndpointsWantACertificateOfTheServer(t *testing.T) {
	file, other := makeCertificates(t, "--client", "graphd"), makeCertificates(t, "--client", "mallory")
	e := startSecureEndpoint(t, file, file("ca.pem"))
	ca := "--endpoint-tls-ca=" + file("ca.pem")
	own := []string{ca, "--endpoint-tls-cert=" + file("client-graphd.pem"), "--endpoint-tls-key=" + file("client-graphd-key.pem")}
	foreign := []string{ca, "--endpoint-tls-cert=" + other("client-mallory.pem"), "--endpoint-tls-key=" + other("client-mallory-key.pem")}
	const untrusted = "no CA that the server trusts has signed its certificate"
	for name, c := range map[string]struct {
		options []string
		waits   string // why the task waits, "" = it is done
	}{
		"right":               {options: own},
		"none":                {options: []string{ca}, waits: "it ends the TLS handshake: tls: certificate required"},
		"of another CA":       {options: foreign, waits: "unknown certificate authority"},
		"another CA is known": {options: append([]string{"--endpoint-tls-ca=" + other("ca.pem")}, own[1:]...), waits: untrusted},
		"the CAs of a system": {options: own[1:], waits: untrusted},
		"no option":           {options: nil, waits: untrusted},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveLimited(t, c.options)
			s.mustPutGraph(secureGraph(e.address))
			require.NoError(t, s.startRun("t", "g", `{}`))
			if c.waits != "" {
				why := s.waitForUnassigned("t")
				require.Contains(t, why, "does not answer: ")
				require.Contains(t, why, c.waits)
				require.NotContains(t, why, ".pem")
				require.Empty(t, e.callers)
				return
			}
			run, err := s.client.WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: "t"})
			require.NoError(t, err)
			require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), "%v", run.GetFailure())
			require.Equal(t, "graphd", <-e.callers)
		})
	}
}

// A server takes up new files, for connections that begin after.
func TestAServerPresentsItsNewCertificateToEndpoints(t *testing.T) {
	file, next := makeCertificates(t, "--client", "first"), makeCertificates(t, "--client", "second")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	replace := func(from, name string) {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(at("new"), text, 0o600))
		require.NoError(t, os.Rename(at("new"), at(name)))
	}
	replace(file("client-first.pem"), "own.pem")
	replace(file("client-first-key.pem"), "own-key.pem")
	e := startSecureEndpoint(t, file, file("ca.pem"))
	s := serveLimited(t, []string{
		"--endpoint-tls-ca=" + file("ca.pem"), "--endpoint-tls-cert=" + at("own.pem"), "--endpoint-tls-key=" + at("own-key.pem"),
	})
	s.mustPutGraph(secureGraph(e.address))
	for _, thread := range []string{"first", "second"} {
		require.NoError(t, s.startRun(thread, "g", `{}`))
		run, err := s.client.WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: thread})
		require.NoError(t, err)
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), "%v", run.GetFailure())
		require.Equal(t, thread, <-e.callers)
		replace(next("client-second-key.pem"), "own-key.pem")
		replace(next("client-second.pem"), "own.pem")
		e.acceptClientsOf(t, next("ca.pem"))
		e.endConnections()
	}
}

// Files of the server are named by its operator only.
func TestAGraphNamesNoFilesOfTheServer(t *testing.T) {
	s := serveLimited(t, nil)
	for _, node := range []string{
		`{ endpoint: "a:1", tls: { cert: /etc/passwd } }`, `{ endpoint: "a:1", tls: /etc/passwd }`, `{ endpoint: "a:1", tls: true, tls_cert: /etc/passwd }`,
	} {
		reason, _ := s.reasonOf(s.putGraph("graph: g\nchannels: { x: {} }\nnodes:\n  n: { remote: " + node + " }\nedges: [START -> n -> END]\n"))
		require.Equal(t, "INVALID_GRAPH", reason, node)
	}
	for option, says := range map[string]string{
		"endpoint-tls-cert: a.pem\n": "--endpoint-tls-cert needs --endpoint-tls-key", "endpoint-tls-key: a.pem\n": "--endpoint-tls-key needs --endpoint-tls-cert",
	} {
		_, err := readOptions(t, nil, nil, option)
		require.ErrorContains(t, err, says)
	}
	r := commandRunner{}.runCommand(t, "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--endpoint-tls-ca", filepath.Join(t.TempDir(), "none.pem"))
	require.Equal(t, exit.CodeUsage, r.code)
	require.Contains(t, r.err, "--endpoint-tls-ca ")
	require.Contains(t, r.err, "no such file")
}
