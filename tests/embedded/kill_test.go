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
	folder := os.Getenv(folderVariable) //nolint:forbidigo // it tells a process of the test which one it is
	if folder == "" {
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
