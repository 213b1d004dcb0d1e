package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
)

// endpointGraph has a node with an endpoint on line 4.
func endpointGraph(endpoint string) string {
	return fmt.Sprintf("graph: g\nchannels: { x: {} }\nnodes:\n  n: { remote: { endpoint: %q }, timeout: 1m }\nedges: [START -> n -> END]\n", endpoint)
}

// A caller who may put a graph can have the server dial only what its operator allows.
func TestEndpointsOfGraphsAreRefused(t *testing.T) {
	attacks := map[string]string{ // endpoint: pattern that would allow it
		"unix:///var/run/docker.sock":                  "unix:/var/run/docker.sock",
		"unix-abstract:x":                              "unix-abstract:x",
		"passthrough:///127.0.0.1:80":                  "passthrough:///127.0.0.1:80",
		"169.254.169.254:80":                           "169.254.169.254:80",
		"[::ffff:169.254.169.254]:80":                  "169.254.169.254:80",
		"dns:///METADATA.google.internal.":             "metadata.google.internal:443",
		"dns://203.0.113.1/pricing":                    "dns://203.0.113.1:53/pricing:443",
		"vsock:2:1024":                                 "vsock:2:1024",
		"xds:///pricing":                               "xds:///pricing",
		"https://pricing":                              "https://pricing",
		"2852039166:80":                                "",
		"passthrough:///unix:///var/run/docker.sock:1": "",
	}
	for name, c := range map[string]struct {
		options          []string
		allowed, refused []string
	}{
		"loopback":  {nil, []string{"pricing:443", "10.0.0.1:80", "127.0.0.1:1"}, nil},
		"elsewhere": {[]string{"--listen=0.0.0.0:0", "--insecure"}, nil, []string{"pricing:443", "127.0.0.1:1"}},
		"listed":    {[]string{"--listen=0.0.0.0:0", "--insecure", "--endpoint-allow=*.prod:443", "--endpoint-allow=10.0.0.0/8:7777"}, []string{"a.prod", "10.9.9.9:7777"}, []string{"pricing:443"}},
		"narrowed":  {[]string{"--endpoint-allow=pricing:443"}, []string{"pricing"}, []string{"127.0.0.1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveLimited(t, c.options)
			for _, endpoint := range c.allowed {
				require.NoError(t, s.putGraph(endpointGraph(endpoint)))
			}
			for _, endpoint := range c.refused {
				requireEndpointRefused(s, endpoint, endpoint)
			}
			for endpoint, pattern := range attacks {
				requireEndpointRefused(s, endpoint, pattern)
			}
		})
	}
}

func requireEndpointRefused(s *limitedServer, endpoint, pattern string) {
	err := s.putGraph(endpointGraph(endpoint))
	reason, _ := s.reasonOf(err)
	require.Equal(s.t, "INVALID_GRAPH", reason, endpoint)
	for _, d := range status.Convert(err).Details() {
		bad, ok := d.(*errdetails.BadRequest)
		if !ok {
			continue
		}
		v := bad.GetFieldViolations()[0]
		require.Equal(s.t, "nodes.n.remote.endpoint", v.GetField())
		require.Contains(s.t, v.GetDescription(), "line 4: endpoint ")
		require.Contains(s.t, v.GetDescription(), "(ENDPOINT_NOT_ALLOWED)")
		if pattern != "" {
			require.Contains(s.t, v.GetDescription(), "--endpoint-allow "+pattern+" ")
		}
		return
	}
	require.Fail(s.t, "no violation", "%v", err)
}

// A graph that a server with other options has stored is refused when it is dialled:
// its task fails, and the server serves on.
func TestEndpointsOfStoredGraphsAreRefused(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan bool, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- true
			_ = c.Close()
		}
	}()
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "graphd.db")
	t.Run("put", func(t *testing.T) {
		s := serveLimited(t, []string{store, "--endpoint-allow=unix:" + socket})
		s.mustPutGraph(endpointGraph("unix:" + socket))
	})
	s := serveLimited(t, []string{store})
	require.NoError(t, s.startRun("t", "g", `{}`))
	run, err := s.client.WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: "t"})
	require.NoError(t, err)
	require.Equal(t, "ENDPOINT_NOT_ALLOWED", run.GetFailure().GetReason())
	require.Equal(t, "EndpointNotAllowed", run.GetFailure().GetType())
	require.Contains(t, run.GetFailure().GetMessage(), "--endpoint-allow unix:"+socket)
	require.Empty(t, accepted)
	requireEndpointRefused(s, "unix:"+socket, "unix:"+socket)
}

// A server does not start with a graph whose endpoint it may not dial.
func TestEndpointsInFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "graph.yaml"), []byte(endpointGraph("unix:/run/x.sock")), 0o600))
	o := server.Options{Listen: "127.0.0.1:0", Store: "memory", Graphs: []string{dir}}
	_, err := server.NewServer(t.Context(), o, zap.NewNop(), "test")
	require.ErrorContains(t, err, "graph.yaml:4: nodes.n.remote.endpoint: endpoint")
	require.ErrorContains(t, err, "--endpoint-allow unix:/run/x.sock (ENDPOINT_NOT_ALLOWED)")
}

// graph check decides as a server with the same patterns does, with the same line and
// the same words.
func TestGraphCheckRefusesTheEndpointsThatAServerRefuses(t *testing.T) {
	patterns := []string{"--endpoint-allow=*.prod:443", "--endpoint-allow=10.0.0.0/8:7777"}
	s := serveLimited(t, patterns)
	path := filepath.Join(t.TempDir(), "graph.yaml")
	for _, endpoint := range []string{
		"a.prod", "10.9.9.9:7777", "pricing:443", "127.0.0.1:1", "unix:/run/x.sock", "127.1", "169.254.169.254:80", "dns://203.0.113.1/a.prod",
	} {
		require.NoError(t, os.WriteFile(path, []byte(endpointGraph(endpoint)), 0o600))
		checked := commandRunner{}.runCommand(t, append(append([]string{"graph", "check"}, patterns...), path, "-o", "json")...)
		var problems []fileProblem
		require.NoError(t, json.Unmarshal([]byte(checked.out), &problems))
		err := s.putGraph(endpointGraph(endpoint))
		if err == nil {
			require.Equal(t, exit.CodeDone, checked.code)
			require.Empty(t, problems, endpoint)
			continue
		}
		require.Equal(t, exit.CodeError, checked.code)
		require.Len(t, problems, 1, endpoint)
		require.Equal(t, "nodes.n.remote.endpoint", problems[0].Path)
		put := status.Convert(err).Details()
		bad, ok := put[slices.IndexFunc(put, func(d any) bool { _, isBad := d.(*errdetails.BadRequest); return isBad })].(*errdetails.BadRequest)
		require.True(t, ok)
		require.Equal(t, bad.GetFieldViolations()[0].GetDescription(),
			fmt.Sprintf("line %d: %s (%s)", problems[0].Line, problems[0].Message, problems[0].Reason))
	}
	require.NoError(t, os.WriteFile(path, []byte(endpointGraph("pricing:443")), 0o600))
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		code int
		says string
	}{
		"no pattern":       {code: exit.CodeDone},
		"an empty pattern": {args: []string{"--endpoint-allow="}, code: exit.CodeError, says: "graph.yaml:4: nodes.n.remote.endpoint: endpoint"},
		"environment":      {env: map[string]string{"GRAPHD_ENDPOINT_ALLOW": "a:1, b:2"}, code: exit.CodeError, says: "--endpoint-allow pricing:443"},
		"flag before":      {env: map[string]string{"GRAPHD_ENDPOINT_ALLOW": "a:1"}, args: []string{"--endpoint-allow=pricing"}, code: exit.CodeDone},
		"wrong pattern":    {args: []string{"--endpoint-allow=127.1"}, code: exit.CodeUsage, says: "four decimal numbers"},
	} {
		r := commandRunner{env: c.env}.runCommand(t, append(append([]string{"graph", "check"}, c.args...), path)...)
		require.Equal(t, c.code, r.code, "%s: %s", name, r.err)
		require.Contains(t, r.err, c.says, name)
	}
}
