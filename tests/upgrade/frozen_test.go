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
	frozenStores = "testdata/frozen"
	sqliteFile   = "graphd.db.gz"
	redisFile    = "redis.jsonl.gz"
	accountFile  = "account.json.gz"
)

// keysFile has the keys that sealed stores were written with.
const keysFile = "testdata/keys"

// settings is how a store was written, by what its name ends in.
func settings(name string) []string {
	if strings.HasSuffix(name, "-sealed") {
		return []string{"--compress", "--encryption-keys", keysFile}
	}
	return nil
}

// place is where a frozen store was put so that it can be used.
type place struct {
	store string // for --store
	redis *redistest.Server
}

// thaw puts a frozen store where a server can use it.
func thaw(tb testing.TB, name string) place {
	tb.Helper()
	folder := filepath.Join(frozenStores, name)
	if data, err := os.ReadFile(filepath.Join(folder, sqliteFile)); err == nil {
		file := filepath.Join(tb.TempDir(), "graphd.db")
		require.NoError(tb, os.WriteFile(file, unzip(tb, data), 0o600))
		return place{store: "sqlite:" + file}
	}
	data, err := os.ReadFile(filepath.Join(folder, redisFile))
	require.NoError(tb, err)
	r := redistest.Start(tb, "--appendfsync", "no")
	restore(tb, r, unzip(tb, data))
	return place{store: r.URL(""), redis: r}
}

// before is what was read from a frozen store when it was frozen.
func before(tb testing.TB, name string) account {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(frozenStores, name, accountFile))
	require.NoError(tb, err)
	var a account
	require.NoError(tb, json.Unmarshal(unzip(tb, data), &a))
	return a
}

func unzip(tb testing.TB, data []byte) []byte {
	tb.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(tb, err)
	out, err := io.ReadAll(r)
	require.NoError(tb, err)
	return out
}
