//go:build freeze

package upgrade_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/built"
)

var (
	program = flag.String("program", "", "graphd that writes the stores; left out: today's")
	number  = flag.String("number", "", "what follows the kind in the name of the stores, like 3")
	kinds   = flag.String("kinds", "redis sqlite", "which stores")
)

// TestFreeze writes a store of each kind and keeps it, see `make freeze`.
func TestFreeze(t *testing.T) {
	if *program == "" {
		*program = built.Graphd(t)
	}
	require.NotEmpty(t, *number, "give -number")
	for _, more := range []string{"", "-sealed", "-people", "-people-sealed"} {
		for _, kind := range bytes.Fields([]byte(*kinds)) {
			name := string(kind) + "-" + *number + more
			require.NoDirExists(t, filepath.Join(frozenDir, name), "a frozen store never changes")
			t.Run(name, func(t *testing.T) { freezeStore(t, string(kind), name) })
		}
	}
}

func freezeStore(t *testing.T, kind, name string) {
	file := filepath.Join(t.TempDir(), "graphd.db")
	store := "sqlite:" + file
	var r *redistest.Server
	if kind == "redis" {
		r = redistest.Start(t, "--appendfsync", "no")
		store = r.URL("")
	}
	read := storeContents{}
	if isForPeople(name) {
		createDecisions(t, store, storeFlags(name)...)
	} else {
		read = createContents(t, store, storeFlags(name)...)
	}
	folder := filepath.Join(frozenDir, name)
	require.NoError(t, os.MkdirAll(folder, 0o750))
	if kind == "redis" {
		writeGzip(t, filepath.Join(folder, redisFile), listKeys(t, r))
	} else {
		writeGzip(t, filepath.Join(folder, sqliteFile), vacuumCopy(t, file))
	}
	text, err := json.Marshal(read)
	require.NoError(t, err)
	writeGzip(t, filepath.Join(folder, accountFile), text)
}

// createContents makes threads on a server that is killed, and returns what was read of them.
func createContents(t *testing.T, store string, flags ...string) storeContents {
	createKnown(t, *program, store, flags...)
	s := startServer(t, *program, store, append(flags, "--graphs", "testdata/graphs", "--lease", "5s")...)
	s.createThreads()
	require.Eventually(t, func() bool {
		list, err := s.ListRuns(t.Context(), &graphdv1.ListRunsRequest{ThreadId: "queued"})
		return err == nil && len(list.GetRuns()) == 3
	}, waitTimeout, waitTimeout/1000)
	read := s.readContents()
	s.Kill()
	return read
}

func writeGzip(t *testing.T, file string, data []byte) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
}
