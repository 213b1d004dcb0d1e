// Package attacks_test attacks a server, which runs as securely as its program can, over
// the wire. A test fails where the attack succeeds. The package uses options of the
// program only where the program has them, and calls that each version has, so that it
// also tries programs that are older than their defences.
package attacks_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
)

// The callers, and the roles that each has.
const (
	admin    = "admin"    // puts the graphs
	officer  = "officer"  // answers questions
	customer = "customer" // starts runs
	coder    = "coder"    // puts graphs
	owner    = "owner"    // has a worker
	stranger = "stranger" // has a worker of the same graph
)

var rolesOf = map[string]string{
	admin: "admin", officer: "answerer", customer: "starter", coder: "author", owner: "worker", stranger: "worker",
}

// server is a server of its own process, and the tokens of its callers.
type server struct {
	*harness.Server

	tokens map[string]string // none where the server does not know callers
}

// startServer starts a server that knows its callers and dials no endpoint, as far as the
// program can.
func startServer(t *testing.T) *server {
	t.Helper()
	program := built.Graphd(t)
	help, err := exec.CommandContext(t.Context(), program, "serve", "--help").Output()
	require.NoError(t, err)
	var options []string
	tokens := make(map[string]string)
	if strings.Contains(string(help), "--api-keys ") {
		keys := filepath.Join(t.TempDir(), "keys.yaml")
		for name, role := range rolesOf {
			token, err := exec.CommandContext(t.Context(), program, "keys", "create", "--file", keys, "--name", name, "--role", role).Output()
			require.NoError(t, err)
			tokens[name] = strings.TrimSpace(string(token))
		}
		options = append(options, "--api-keys", keys)
	}
	if strings.Contains(string(help), "--endpoint-allow ") {
		options = append(options, "--endpoint-allow", "pricing.example:443")
	}
	return &server{harness.StartServer(t, []string{program}, "memory", options...), tokens}
}

// as returns the context of calls of a caller.
func (s *server) as(t *testing.T, caller string) context.Context {
	t.Helper()
	if token := s.tokens[caller]; token != "" {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	return t.Context()
}

// putGraph puts a graph for a caller.
func (s *server) putGraph(t *testing.T, caller, document string) error {
	t.Helper()
	_, err := s.PutGraph(s.as(t, caller), &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: document}})
	return err
}

// startRun starts a run of a new thread.
func (s *server) startRun(t *testing.T, thread, graph, input string) *graphdv1.Run {
	t.Helper()
	run, err := s.StartRun(s.as(t, customer), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: graph, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(input)},
	}})
	require.NoError(t, err)
	return run
}

// waitForRun waits until a run has ended or waits for answers.
func (s *server) waitForRun(t *testing.T, run *graphdv1.Run) *graphdv1.Run {
	t.Helper()
	for !harness.IsStopped(run.GetState()) {
		var err error
		run, err = s.WaitRun(s.as(t, customer), &graphdv1.WaitRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
		require.NoError(t, err)
	}
	return run
}

// readGraph returns a graph of the folder testdata.
func readGraph(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	return string(text)
}
