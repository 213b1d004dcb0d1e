package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
)

func testKey(b string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(b, 32)))
}

// startSealedServer starts a server with keys; seen has its log.
func startSealedServer(t *testing.T, store, keys string) (c commandRunner, stop func(), seen *observer.ObservedLogs, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte(keys), 0o600))
	core, seen := observer.New(zap.DebugLevel)
	o := server.Options{
		Listen: "127.0.0.1:0", Store: store, Graphs: []string{examplesDir}, Compress: true, EncryptionKeys: file,
		Lease: 15 * time.Second,
	}
	if keys == "" {
		o.EncryptionKeys = ""
	}
	log := zap.New(core)
	log.Info("configuration", o.LogFields()...)
	s, err := server.NewServer(t.Context(), o, log, "test")
	if err != nil {
		return c, nil, seen, err
	}
	s.StartServing()
	return commandRunner{server: s.Address()}, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		require.NoError(t, s.DrainServer(ctx))
	}, seen, nil
}

// TestKeysOfAServer asks under one key, answers after its rotation, and searches
// the stored bytes for the texts of both.
func TestKeysOfAServer(t *testing.T) {
	folder, server := t.TempDir(), redistest.Start(t)
	for store, files := range map[string]string{
		"sqlite:" + filepath.Join(folder, "g.db"): folder,
		server.URL(""): server.Client.ConfigGet(t.Context(), "dir").Val()["dir"],
	} {
		kind, _, _ := strings.Cut(store, ":")
		t.Run(kind, func(t *testing.T) {
			k1, k2 := "k1: "+testKey("1")+"\n", "k2: "+testKey("2")+"\n"
			c, stop, _, err := startSealedServer(t, store, k1)
			require.NoError(t, err)
			r := c.runCommand(t, "run", "refund-review", "--thread", "t1", "--input", refundInput)
			require.Equal(t, 3, r.code, r.err)
			stop()
			require.False(t, containsText(t, files, "order 8841"))

			for keys, want := range map[string]string{
				"": `sealed with, "k1", are not given`, k2: `sealed with, "k1", are not given`,
				"k1: " + testKey("3"): `key "k1" is not the one that the store knows by this id`,
			} {
				_, _, seen, err := startSealedServer(t, store, keys)
				require.ErrorContains(t, err, want)
				requireNoSecrets(t, seen, err.Error())
			}

			c, stop, seen, err := startSealedServer(t, store, "# new one first\n"+k2+k1)
			require.NoError(t, err)
			r = c.runCommand(t, "resume", "t1", "--value", `{"decision": "approved", "note": "quite all right"}`)
			require.Equal(t, 0, r.code, r.err)
			require.Contains(t, r.out, "Your refund has been approved")
			require.Contains(t, c.runCommand(t, "state", "t1").out, "order 8841")
			stop()
			for _, text := range []string{"order 8841", "quite all right", "has been approved"} {
				require.False(t, containsText(t, files, text), text)
			}
			requireNoSecrets(t, seen, "")
			require.Empty(t, seen.FilterMessageSnippet("keys").FilterLevelExact(zap.WarnLevel).All())

			// The first key may be removed when no record under it is left; until
			// then graphd warns.
			c, stop, seen, err = startSealedServer(t, store, k2)
			require.NoError(t, err)
			require.Len(t, seen.FilterMessageSnippet(`the keys "k1" are not given`).All(), 1)
			r = c.runCommand(t, "history", "t1")
			require.NotEqual(t, 0, r.code)
			require.Contains(t, r.err, "threadId: t1")
			require.Contains(t, logText(seen), `sealed with the key "k1", which was not given`)
			r = c.runCommand(t, "run", "refund-review", "--thread", "t2", "--input", refundInput)
			require.Equal(t, 3, r.code, r.err)
			stop()
		})
	}
}

func requireNoSecrets(t *testing.T, seen *observer.ObservedLogs, text string) {
	t.Helper()
	text += logText(seen)
	for _, b := range []string{"1", "2", "3"} {
		require.NotContains(t, text, testKey(b)[:12])
	}
}

// logText returns the whole log.
func logText(seen *observer.ObservedLogs) string {
	var b strings.Builder
	for _, entry := range seen.All() {
		fmt.Fprintln(&b, entry.Message, entry.ContextMap())
	}
	return b.String()
}

func containsText(t *testing.T, dir, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	size := 0
	for _, f := range append(files, more...) {
		content, err := os.ReadFile(f)
		if err != nil {
			continue // a folder
		}
		size += len(content)
		if bytes.Contains(content, []byte(text)) {
			return true
		}
	}
	require.Greater(t, size, 1000)
	return false
}

func TestKeyFilesThatCanNotBeUsed(t *testing.T) {
	dir := t.TempDir()
	core, seen := observer.New(zap.DebugLevel)
	for name, c := range map[string]struct{ store, text, want string }{
		"missing":   {"sqlite:a.db", "", "no such file"},
		"empty":     {"sqlite:a.db", "# none", "the keys are missing"},
		"no base64": {"sqlite:a.db", "k1: ***", `line 1: key "k1" is not in base64`},
		"short":     {"sqlite:a.db", "k1: c2hvcnQ=", `line 1: key "k1" has 5 bytes`},
		"memory":    {"memory", "k1: " + testKey("1"), "nothing that could be"},
	} {
		file := filepath.Join(dir, name)
		if c.text != "" {
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		}
		parsed, err := server.ParseStore(c.store)
		require.NoError(t, err)
		o := server.Options{EncryptionKeys: file}
		_, err = o.ReadSealOptions(parsed, zap.New(core))
		var wrong *exit.UsageError
		require.ErrorAs(t, err, &wrong, name)
		require.ErrorContains(t, err, c.want)
	}
	require.Zero(t, seen.Len())

	open := filepath.Join(dir, "open")
	require.NoError(t, os.WriteFile(open, []byte("k1: "+testKey("1")), 0o600))
	require.NoError(t, os.Chmod(open, 0o644))
	o := server.Options{EncryptionKeys: open}
	opts, err := o.ReadSealOptions(server.StoreConfig{Kind: server.KindRedis}, zap.New(core))
	require.NoError(t, err)
	require.Equal(t, "k1", opts.Keys[0].ID)
	require.Equal(t, 1, seen.FilterMessageSnippet("others may read").Len())
}
