package embedded_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
)

// folderVariable names the folder of a process that TestKilledProcess is.
const folderVariable = "EMBEDDED_TEST_FOLDER"

// newKilled is a graph whose node dies with its process the first time that it runs, when a
// sibling has ended. Each call of a node is a line of a file.
func newKilled(folder string) *graph.Builder {
	note := func(what string) error {
		f, err := os.OpenFile(filepath.Join(folder, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(what + "\n")
		return errors.Join(err, f.Close())
	}
	g := graph.New("killed").Channel("log", graph.Reducer("append"))
	for _, name := range []string{"before", "sibling", "after"} {
		g.Node(name, func(context.Context, graph.State) (any, error) {
			return map[string]any{"log": []string{name}}, note(name)
		})
	}
	return g.Node("dies", func(ctx context.Context, _ graph.State) (any, error) {
		paid, err := graph.Memo(ctx, "pay", func(context.Context) (string, error) { return "paid", note("pay") })
		if err != nil {
			return nil, err
		}
		_, err = os.Stat(filepath.Join(folder, "dead"))
		if errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(filepath.Join(folder, "dead"), nil, 0o600); err != nil {
				return nil, err
			}
			timer := time.NewTimer(200 * time.Millisecond) // the sibling ends
			<-timer.C
			_ = note("dies")
			os.Exit(7)
		}
		return map[string]any{"log": []string{paid}}, err
	}).
		Edge(graph.Start, "before").Edge("before", "sibling").Edge("before", "dies").Join([]string{"sibling", "dies"}, "after")
}

// TestKilledProcess is the process that is killed.
func TestKilledProcess(t *testing.T) {
	folder := os.Getenv(folderVariable)               //nolint:forbidigo // it tells a process of the test which one it is
	if folder == "" || os.Getenv(endVariable) != "" { //nolint:forbidigo // it tells a process of the test which one it is
		return // the test of the process that starts it
	}
	p := open(t, graphd.SQLite(filepath.Join(folder, "app.db")), newKilled(folder))
	p.run("killed", "t", `{}`)
}

// A process that dies in a node leaves what was done: another one goes on by itself, without what
// has ended before, siblings and memos included.
func TestAKilledProcess(t *testing.T) {
	folder := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProcess$")
	child.Env = append(os.Environ(), folderVariable+"="+folder)
	said, err := child.CombinedOutput()
	died, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "%v: %s", err, said)
	require.Equal(t, 7, died.ExitCode(), string(said))

	p := open(t, graphd.SQLite(filepath.Join(folder, "app.db")), newKilled(folder))
	o, err := p.Wait(t.Context(), "t", "")
	require.NoError(t, err)
	requireOutput(t, o, `{"log":["before","paid","sibling","after"]}`)
	calls, err := os.ReadFile(filepath.Join(folder, "calls"))
	require.NoError(t, err)
	lines := strings.Fields(string(calls))
	require.Equal(t, "before", lines[0])
	require.ElementsMatch(t, []string{"before", "pay", "sibling", "dies", "after"}, lines)
	_, err = p.Invoke(t.Context(), client.Run{Graph: "killed", Thread: "t2", Input: map[string]any{}})
	require.NoError(t, err)
}

// Ends of processes that TestEndingProcess is.
const (
	endVariable    = "EMBEDDED_TEST_END"
	endAfterStart  = "after the start"
	endAfterAnswer = "after the answer"
)

// newAsking is a graph that asks once, and writes down each answer that it uses.
func newAsking() *graph.Builder {
	return graph.New("asking").Channel("said").Channel("log", graph.Reducer("append")).
		Node("begin", say("log", []string{"begun"})).Node("ask", askInto("said", "on?")).
		Chain(graph.Start, "begin", "ask", graph.End)
}

// TestEndingProcess is the process that ends at once when a call has returned.
func TestEndingProcess(t *testing.T) {
	folder, end := os.Getenv(folderVariable), os.Getenv(endVariable) //nolint:forbidigo // they tell a process of the test which one it is
	if folder == "" || end == "" {
		return // the test of the process that starts it
	}
	p := open(t, graphd.SQLite(filepath.Join(folder, "app.db")), newAsking())
	_, err := p.Start(t.Context(), client.Run{Graph: "asking", Thread: "t", Input: map[string]any{}})
	require.NoError(t, err)
	if end == endAfterStart {
		os.Exit(7)
	}
	o, err := p.Wait(t.Context(), "t", "")
	require.NoError(t, err)
	answer := client.AnswerTo(o.Questions[0], "yes")
	_, err = p.Graphs().ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: "t", Responses: []*graphdv1.InterruptResponse{{
			InterruptId: answer.Question, Outcome: &graphdv1.InterruptResponse_Value{Value: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: `"yes"`}}},
		}},
	}})
	require.NoError(t, err)
	os.Exit(7)
}

// What a call has accepted is in the store when it returns: a process that dies right after it loses
// neither the run nor the answer, and the next one goes on by itself.
func TestAProcessThatEndsAfterACall(t *testing.T) {
	for _, end := range []string{endAfterStart, endAfterAnswer} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEndingProcess$")
			child.Env = append(os.Environ(), folderVariable+"="+folder, endVariable+"="+end)
			said, err := child.CombinedOutput()
			died, ok := errors.AsType[*exec.ExitError](err)
			require.True(t, ok, "%v: %s", err, said)
			require.Equal(t, 7, died.ExitCode(), string(said))

			p := open(t, graphd.SQLite(filepath.Join(folder, "app.db")), newAsking())
			o, err := p.Wait(t.Context(), "t", "")
			require.NoError(t, err)
			if end == endAfterStart {
				require.Equal(t, []string{`"on?"`}, values(o))
				o = p.answer("t", client.AnswerTo(o.Questions[0], "yes"))
			}
			requireOutput(t, o, `{"log":["begun"],"said":"yes"}`)
		})
	}
}
