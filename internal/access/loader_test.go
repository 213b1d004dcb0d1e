package access_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/access"
)

const (
	onePolicy   = "bindings: [{roles: [viewer], principals: [ana]}]"
	otherPolicy = "bindings: [{roles: [viewer], principals: [ben]}]"
)

// replaceFile writes a file as an administrator should: by a rename.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func mayRead(l *access.Loader, name string) bool {
	caller := access.Caller{Name: name, Tenant: "acme"}
	return l.Policy().Decide(access.Request{Caller: caller, Method: listThreads}).Allowed
}

func TestLoaderKeepsThePolicyOfABrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replaceFile(t, path, onePolicy)
	synctest.Test(t, func(t *testing.T) {
		l, err := access.NewLoader(path)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		var reports []error
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Watch(ctx, time.Second, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, err)
			})
		}()
		// Several intervals pass after each change, and it is told once.
		after := func(change func()) []error {
			change()
			time.Sleep(5 * time.Second) //nolint:forbidigo // of the bubble
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			told := reports
			reports = nil
			return told
		}
		require.True(t, mayRead(l, "ana"))
		require.Empty(t, after(func() {}))
		require.Empty(t, after(func() { replaceFile(t, path, onePolicy) }), "the same content")

		require.Equal(t, []error{nil}, after(func() { replaceFile(t, path, otherPolicy) }))
		require.True(t, mayRead(l, "ben"))
		require.False(t, mayRead(l, "ana"))

		told := after(func() { replaceFile(t, path, "bindings: [{roles: [root], principals: [eva]}]") })
		require.Len(t, told, 1)
		var bad *access.FileError
		require.ErrorAs(t, told[0], &bad)
		require.ErrorContains(t, told[0], `line 1: bindings[0].roles[0]: unknown role "root"`)
		require.True(t, mayRead(l, "ben"))

		told = after(func() { replaceFile(t, path, "") })
		require.Len(t, told, 1, "another mistake")
		require.ErrorContains(t, told[0], "the file is empty")
		require.True(t, mayRead(l, "ben"))

		told = after(func() { require.NoError(t, os.Remove(path)) })
		require.Len(t, told, 1)
		require.ErrorIs(t, told[0], fs.ErrNotExist)
		require.True(t, mayRead(l, "ben"))

		require.Equal(t, []error{nil}, after(func() { replaceFile(t, path, otherPolicy) }), "it is as it was")
		require.True(t, mayRead(l, "ben"))
		require.Equal(t, []error{nil}, after(func() { replaceFile(t, path, onePolicy) }))
		require.True(t, mayRead(l, "ana"))
		require.False(t, mayRead(l, "ben"))
		stop()
		<-done
	})
}

func TestLoaderRefusesToBegin(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	broken := filepath.Join(dir, "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("bindings: 1"), 0o600))
	large := filepath.Join(dir, "large.yaml")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<32))
	for path, words := range map[string]string{
		filepath.Join(dir, "none.yaml"): "no such file",
		dir:                             "no regular file; want a policy in YAML",
		pipe:                            "no regular file",
		broken:                          "line 1: bindings: found 1, which is no text",
		large:                           "bytes; want at most 4194304",
	} {
		l, err := access.NewLoader(path)
		require.ErrorContains(t, err, words)
		require.ErrorContains(t, err, path)
		require.Nil(t, l)
	}
}
