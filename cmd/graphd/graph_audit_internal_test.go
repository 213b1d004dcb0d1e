package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/audit"
)

// lastRecord waits for the record of a caller's newest call of a method: the one that
// follows those that were seen.
func lastRecord(t *testing.T, path, caller, method string, seen int) (r audit.Record) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		n, lines := 0, audit.NewReader(bytes.NewReader(text))
		for {
			e, err := lines.Read()
			if errors.Is(err, io.EOF) {
				return n == seen+1
			}
			if err == nil && e.ShortMethod() == method && e.Principal == caller {
				n++
				r = e.Record
			}
		}
	}, time.Minute, 5*time.Millisecond)
	return r
}

// Who takes a question away is in the audit with what was taken, whether it was allowed or
// refused.
func TestTheAuditHasTheQuestionsThatAChangeRemoves(t *testing.T) {
	s := startAccessServer(t)
	registry := graphdv1.NewRegistryServiceClient(s.conn)
	without, with := fmt.Sprintf(openGraph, "asking"), fmt.Sprintf(askingGraph, "asking")
	put := func(caller, document string) (version string, err error) {
		g, err := registry.PutGraph(s.as(t.Context(), caller), &graphdv1.PutGraphRequest{
			Definition: &graphdv1.PutGraphRequest_Document{Document: document}, DocumentName: "g.yaml",
		})
		return g.GetVersion(), err
	}
	breakpoint := []string{`asking: the breakpoint before "n"`}
	got, err := registry.GetGraph(s.as(t.Context(), "root"), &graphdv1.GetGraphRequest{Graph: "asking"})
	require.NoError(t, err)
	first := got.GetVersion()

	const putMethod, deleteMethod, deleteVersion = "RegistryService/PutGraph", "RegistryService/DeleteGraph", "RegistryService/DeleteGraphVersion"
	_, err = put("author", without)
	require.Error(t, err)
	r := lastRecord(t, s.audit, "author", putMethod, 0)
	require.Equal(t, "author refused right: approve-changes", r.Principal+" "+string(r.Outcome)+" "+r.Rule)
	require.Equal(t, breakpoint, r.What["removed_questions"])
	require.Equal(t, []string{"asking@" + first}, r.What["graph_before"])
	refused := r.What["graph_refused"]
	require.Equal(t, refused, r.What["graph_after"])
	require.NotContains(t, fmt.Sprint(r.What), "channels", "no document")

	second, err := put("approver", without)
	require.NoError(t, err)
	require.Equal(t, []string{"asking@" + second}, refused)
	r = lastRecord(t, s.audit, "approver", putMethod, 0)
	require.Equal(t, "approver ok asking "+second, r.Principal+" "+string(r.Outcome)+" "+r.Graph+" "+r.Version)
	require.Equal(t, breakpoint, r.What["removed_questions"])
	require.Equal(t, []string{"asking@" + first}, r.What["graph_before"])
	require.Equal(t, []string{"asking@" + second}, r.What["graph_after"])
	require.Empty(t, r.What["graph_refused"])

	third, err := put("author", with+"step_limit: 7\n")
	require.NoError(t, err)
	r = lastRecord(t, s.audit, "author", putMethod, 1)
	require.Equal(t, []string{"asking@" + second}, r.What["graph_before"])
	require.Empty(t, r.What["removed_questions"], "a version that asks more")

	_, err = registry.DeleteGraphVersion(s.as(t.Context(), "author"), &graphdv1.DeleteGraphVersionRequest{Graph: "asking", Version: third})
	require.Error(t, err)
	r = lastRecord(t, s.audit, "author", deleteVersion, 0)
	require.Equal(t, "refused", string(r.Outcome))
	require.Equal(t, breakpoint, r.What["removed_questions"])
	require.Equal(t, []string{"asking@" + third}, r.What["graph_before"])
	require.Equal(t, []string{"asking@" + second}, r.What["graph_after"])

	_, err = registry.DeleteGraph(s.as(t.Context(), "root"), &graphdv1.DeleteGraphRequest{Graph: "asking", Force: true})
	require.NoError(t, err)
	r = lastRecord(t, s.audit, "root", deleteMethod, 0)
	require.Equal(t, audit.OutcomeOK, r.Outcome)
	require.Equal(t, breakpoint, r.What["removed_questions"], "of several versions, once")
	require.Equal(t, []string{"asking@" + third}, r.What["graph_before"])
	require.Empty(t, r.What["graph_after"])

	// A worker brings several graphs, of which one is refused.
	brought := func(name string) string {
		return fmt.Sprintf(`graphs {name: %q channels {name: "x"} nodes {name: "n" remote {}} edges {sources: "__start__" target: "n"}}`, name)
	}
	require.Error(t, s.connectWorker(t, "worker", "hello {worker_id: \"w\" credit {total_slots: 1} manifest {"+brought("open")+"}}"))
	r = lastRecord(t, s.audit, "worker", "WorkerService/Connect", 0)
	require.Equal(t, "w ok", r.Worker+" "+string(r.Outcome))
	require.Len(t, r.What["graph_refused"], 1)
	require.True(t, strings.HasPrefix(r.What["graph_before"][0], "open@"))
	require.NoError(t, s.connectWorker(t, "root", "hello {worker_id: \"w2\" credit {total_slots: 1} manifest {"+brought("open")+"}}"))
	r = lastRecord(t, s.audit, "root", "WorkerService/Connect", 0)
	require.Empty(t, r.What["graph_refused"])
	require.Equal(t, r.What["graph_after"][0], "open@"+r.What["answer.welcome.graphs.version"][0])
}

// A server that does not know its callers notes the same.
func TestTheAuditHasRemovedQuestionsWithoutCallers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s := startAuditedServer(t, path)
	file := filepath.Join(t.TempDir(), "g.yaml")
	put := func(text string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		r := s.runCommand(t, "graph", "put", file)
		require.Zero(t, r.code, r.err)
	}
	put(fmt.Sprintf(askingGraph, "asking"))
	r := lastRecord(t, path, "", "RegistryService/PutGraph", 0)
	require.Empty(t, r.What["graph_before"])
	require.Equal(t, []string{"asking@" + r.Version}, r.What["graph_after"])
	put(fmt.Sprintf(openGraph, "asking"))
	r = lastRecord(t, path, "", "RegistryService/PutGraph", 1)
	require.Equal(t, []string{`asking: the breakpoint before "n"`}, r.What["removed_questions"])
	require.Zero(t, s.runCommand(t, "graph", "delete", "asking").code)
	r = lastRecord(t, path, "", "RegistryService/DeleteGraph", 0)
	require.Len(t, r.What["graph_before"], 1)
	require.Equal(t, []string{`asking: the breakpoint before "n"`}, r.What["removed_questions"], "an older version asked it")
}
