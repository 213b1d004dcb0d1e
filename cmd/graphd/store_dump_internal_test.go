package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

func TestADumpOfEitherStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	file, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	require.NoError(t, err)
	checkpointtest.WriteAll(t.Context(), t, file)
	r := commandRunner{}.runCommand(t, "store", "dump", "t", "--store", "sqlite:"+path)
	require.Zero(t, r.code, "beside a server: %v", r)
	require.NoError(t, file.CheckWritable(t.Context()))
	require.NoError(t, file.Close())
	require.NoError(t, os.Remove(path+"-reserve"))

	url := redistest.Start(t).URL("")
	shared, err := redis.Open(t.Context(), redis.Options{URL: url})
	require.NoError(t, err)
	checkpointtest.WriteAll(t.Context(), t, shared)
	require.NoError(t, shared.Close())

	for _, store := range []string{"sqlite:" + path, url} {
		r := commandRunner{}.runCommand(t, "store", "dump", "t", "-o", "json", "--store", store)
		require.Zero(t, r.code, r)
		kinds := map[string]int{}
		for text := range strings.Lines(r.out) {
			var line struct {
				Kind string `json:"kind"`
			}
			require.NoError(t, json.Unmarshal([]byte(text), &line), text)
			kinds[line.Kind]++
		}
		require.Equal(t, map[string]int{"head": 1, "run": 2, "interrupt": 2, "checkpoint": 2, "channel": 9, "event": 144}, kinds, store)

		r = commandRunner{}.runCommand(t, "store", "dump", "none", "--store", store)
		require.Equal(t, exit.CodeError, r.code, r)
		require.Contains(t, r.err, `has no thread "none"`)
	}
	require.NoFileExists(t, path+"-reserve", "a dump holds nothing back")
}

func TestADumpMakesNoStore(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.db")
	r := commandRunner{}.runCommand(t, "store", "dump", "t", "--store", "sqlite:"+none)
	require.Equal(t, exit.CodeError, r.code, r)
	require.Contains(t, r.err, "hint: name the file")
	require.NoFileExists(t, none)

	require.NoError(t, os.WriteFile(none, nil, 0o600))
	r = commandRunner{}.runCommand(t, "store", "dump", "t", "--store", "sqlite:"+none)
	require.Equal(t, exit.CodeError, r.code, r)
	require.Contains(t, r.err, "nothing is stored in sqlite:"+none)
	info, err := os.Stat(none)
	require.NoError(t, err)
	require.Zero(t, info.Size())

	server := redistest.Start(t)
	r = commandRunner{}.runCommand(t, "store", "dump", "t", "--store", server.URL(""))
	require.Equal(t, exit.CodeError, r.code, r)
	require.Contains(t, r.err, "nothing is stored in "+server.URL(""))
	require.Zero(t, server.Client.DBSize(t.Context()).Val())

	r = commandRunner{}.runCommand(t, "store", "dump", "t", "--store", "memory")
	require.Equal(t, exit.CodeUsage, r.code, r)
	require.Contains(t, r.err, "nothing to dump")
	r = commandRunner{}.runCommand(t, "store", "dump", "t", "-o", "yaml")
	require.Equal(t, exit.CodeUsage, r.code, r)
	require.Contains(t, r.err, "want json")
}

func TestADumpOfAnEncryptedStoreNeedsItsKeys(t *testing.T) {
	dir := t.TempDir()
	path, keys := filepath.Join(dir, "a.db"), filepath.Join(dir, "keys")
	require.NoError(t, os.WriteFile(keys, []byte("k1: a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=\n"), 0o400))
	parsed, err := seal.ParseKeys("k1: a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=\n")
	require.NoError(t, err)
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Seal: seal.Options{Keys: parsed}})
	require.NoError(t, err)
	checkpointtest.WriteAll(t.Context(), t, s)
	require.NoError(t, s.Close())
	r := commandRunner{}.runCommand(t, "store", "dump", "t", "--store", "sqlite:"+path)
	require.Equal(t, exit.CodeError, r.code, r)
	require.Contains(t, r.err, "--encryption-keys")
	r = commandRunner{env: map[string]string{"GRAPHD_ENCRYPTION_KEYS": keys}}.runCommand(t, "store", "dump", "t", "--store", "sqlite:"+path)
	require.Zero(t, r.code, r)
	require.True(t, strings.HasPrefix(r.out, `{"kind":"head","record":{"thread":"t",`), r.out)
}

// A file of an earlier format is named, with the command that migrates it, and is not migrated.
func TestADumpOfAnOlderFileChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	packed, err := os.Open("../../tests/upgrade/testdata/frozen/sqlite-3/graphd.db.gz")
	require.NoError(t, err)
	r, err := gzip.NewReader(packed)
	require.NoError(t, err)
	before, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, packed.Close())
	require.NoError(t, os.WriteFile(path, before, 0o600))
	result := commandRunner{}.runCommand(t, "store", "dump", "again", "--store", "sqlite:"+path)
	require.Equal(t, exit.CodeError, result.code, result)
	require.Contains(t, result.err, "has schema version 3, this graphd writes 8")
	require.Contains(t, result.err, "graphd store migrate --store sqlite:"+path)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// A dump that is given keys of another store, beside a server, leaves the store to its
// servers as it was.
func TestADumpOfRedisChangesNothing(t *testing.T) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	require.NoError(t, os.WriteFile(keys, []byte("k1: a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=\n"), 0o400))
	server := redistest.Start(t)
	s, err := redis.Open(t.Context(), redis.Options{URL: server.URL("")})
	require.NoError(t, err)
	checkpointtest.WriteAll(t.Context(), t, s)
	r := commandRunner{env: map[string]string{"GRAPHD_ENCRYPTION_KEYS": keys}}.runCommand(t, "store", "dump", "t", "--store", server.URL(""))
	require.Zero(t, r.code, r)
	require.NoError(t, s.CheckWritable(t.Context()))
	require.NoError(t, s.Close())
	s, err = redis.Open(t.Context(), redis.Options{URL: server.URL("")})
	require.NoError(t, err, "a server starts without keys, as before")
	require.NoError(t, s.Close())

	require.NoError(t, server.Client.HSet(t.Context(), "graphd{meta}:format", "format", redis.Format-1).Err())
	r = commandRunner{}.runCommand(t, "store", "dump", "t", "--store", server.URL(""))
	require.Equal(t, exit.CodeError, r.code, r)
	require.Contains(t, r.err, "graphd store migrate")
}
