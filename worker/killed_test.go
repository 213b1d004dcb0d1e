package worker_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
)

// Variables that make a process of this test a worker.
const (
	folderVariable  = "WORKER_TEST_FOLDER"
	addressVariable = "WORKER_TEST_ADDRESS"
)

// newDying is a graph whose node ends its process in the second of two memos, the first time that it
// runs. Each effect is a line of a file.
func newDying(folder string) *graph.Builder {
	effect := func(name string) func(context.Context, string) (string, error) {
		return func(_ context.Context, key string) (string, error) {
			f, err := os.OpenFile(filepath.Join(folder, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return "", err
			}
			_, err = f.WriteString(name + "=" + key + "\n")
			if err := errors.Join(err, f.Close()); err != nil {
				return "", err
			}
			if name != "second" {
				return name, nil
			}
			dead := filepath.Join(folder, "dead")
			if _, err := os.Stat(dead); errors.Is(err, fs.ErrNotExist) {
				if err := os.WriteFile(dead, nil, 0o600); err != nil {
					return "", err
				}
				os.Exit(7) // between the effect and its record
			}
			return name, nil
		}
	}
	return oneNode("dying", func(ctx context.Context, _ graph.State) (any, error) {
		first, err := graph.MemoWithKey(ctx, "first", effect("first"))
		if err != nil {
			return nil, err
		}
		second, err := graph.MemoWithKey(ctx, "second", effect("second"))
		return map[string]any{"a": first, "b": second}, err
	})
}

// TestDyingWorker is the worker that dies.
func TestDyingWorker(t *testing.T) {
	folder := os.Getenv(folderVariable) //nolint:forbidigo // it tells a process of the test which one it is
	if folder == "" {
		return // the process of the tests
	}
	require.NoError(t, worker.Run(t.Context(), os.Getenv(addressVariable), newDying(folder))) //nolint:forbidigo // see above
}

func TestAnotherWorkerGoesOnForADeadOne(t *testing.T) {
	t.Parallel()
	s := startServer(t, shortBeats()...)
	folder := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDyingWorker$")
	child.Env = append(os.Environ(), folderVariable+"="+folder, addressVariable+"="+s.Address)
	require.NoError(t, child.Start())
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	s.waitForWorker(t)
	s.start(t, "dying", "t1")
	died, ok := errors.AsType[*exec.ExitError](receive(t, ended, "the end of the worker"))
	require.True(t, ok)
	require.Equal(t, 7, died.ExitCode())

	serve(t, s.Address, newDying(folder))
	requireOutput(t, `{"a":"first","b":"second"}`, s.wait(t, "t1"))
	text, err := os.ReadFile(filepath.Join(folder, "effects"))
	require.NoError(t, err)
	lines := strings.Fields(string(text))
	require.Len(t, lines, 3, "the first effect is recorded, the second one is not")
	require.True(t, strings.HasPrefix(lines[0], "first="))
	require.Equal(t, lines[1], lines[2], "the same key")
}
