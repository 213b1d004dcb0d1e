package upgrade_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// A frozen store is a folder below testdata/frozen, named KIND-FORMAT[-MORE]:
// the store itself, packed with gzip, and all that the graphd that wrote it read
// from it then.
const (
	frozenDir   = "testdata/frozen"
	sqliteFile  = "graphd.db.gz"
	redisFile   = "redis.jsonl.gz"
	accountFile = "account.json.gz"
)

// keysFile has the keys that sealed stores were written with.
const keysFile = "testdata/keys"

// storeFlags is how a store was written, by what its name ends in.
func storeFlags(name string) []string {
	if strings.HasSuffix(name, "-sealed") {
		return []string{"--compress", "--encryption-keys", keysFile}
	}
	return nil
}

// storeLocation is where a frozen store was put so that it can be used.
type storeLocation struct {
	store string // for --store
	redis *redistest.Server
}

// restoreFrozen puts a frozen store where a server can use it.
func restoreFrozen(tb testing.TB, name string) storeLocation {
	tb.Helper()
	folder := filepath.Join(frozenDir, name)
	if data, err := os.ReadFile(filepath.Join(folder, sqliteFile)); err == nil {
		file := filepath.Join(tb.TempDir(), "graphd.db")
		require.NoError(tb, os.WriteFile(file, gunzip(tb, data), 0o600))
		return storeLocation{store: "sqlite:" + file}
	}
	data, err := os.ReadFile(filepath.Join(folder, redisFile))
	require.NoError(tb, err)
	r := redistest.Start(tb, "--appendfsync", "no")
	restoreKeys(tb, r, gunzip(tb, data))
	return storeLocation{store: r.URL(""), redis: r}
}

// readFrozenContents is what was read from a frozen store when it was frozen.
func readFrozenContents(tb testing.TB, name string) storeContents {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(frozenDir, name, accountFile))
	require.NoError(tb, err)
	var a storeContents
	require.NoError(tb, json.Unmarshal(gunzip(tb, data), &a))
	return a
}

func gunzip(tb testing.TB, data []byte) []byte {
	tb.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(tb, err)
	out, err := io.ReadAll(r)
	require.NoError(tb, err)
	return out
}
