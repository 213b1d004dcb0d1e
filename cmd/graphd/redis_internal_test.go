package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/built"
)

func TestServersShareOneRedis(t *testing.T) {
	testSharedStore(t, redistest.Start(t).URL(""))
}

func TestServersShareOneCluster(t *testing.T) {
	testSharedStore(t, redistest.StartCluster(t, 3)[2].URL(""))
}

// testSharedStore asks on one server and answers on another.
func testSharedStore(t *testing.T, store string) {
	t.Helper()
	asks, answers := startServer(t, store), startServer(t, store)
	r := asks.runCommand(t, "run", "refund-review", "--thread", "t1", "--input", refundInput)
	require.Equal(t, 3, r.code, r.err)
	r = answers.runCommand(t, "inbox")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "Refund requested: I want a refund for order 8841  ")
	watched, leave := asks.startCommand(t, "watch", "t1")
	defer leave()
	r = answers.runCommand(t, "resume", "t1", "--value", `{"decision": "approved"}`)
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "Your refund has been approved")
	watched.waitForMatch(t, regexp.MustCompile("Your refund has been approved"))
	requireLinear(t, asks, "t1", 5)
	r = asks.runCommand(t, "threads", "list")
	require.Contains(t, r.out, "t1")
}

// A graph that was put at one server runs on the others as well.
func TestGraphsReachOtherServers(t *testing.T) {
	store := redistest.Start(t).URL("")
	one, other := startServer(t, store), startServer(t, store)
	file := filepath.Join(t.TempDir(), "short.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(countingGraph, "1499", "2")), 0o600))
	require.Equal(t, 0, one.runCommand(t, "graph", "put", file).code)
	require.Eventually(t, func() bool {
		return other.runCommand(t, "run", "counting", "-i", `{"n": 0}`).code == 0
	}, time.Minute, 50*time.Millisecond)
}

// A live server continues the runs of a killed one, and a watcher there sees every
// update once.
func TestAnotherServerTakesOver(t *testing.T) {
	store := redistest.Start(t, "--appendfsync", "everysec").URL("")
	file := filepath.Join(t.TempDir(), "counting.yaml")
	require.NoError(t, os.WriteFile(file, []byte(countingGraph), 0o600))
	lease := []string{"--lease", "2s"}
	first := startServerProcess(t, "", store, lease...)
	require.Equal(t, 0, commandRunner{server: first.address}.runCommand(t, "graph", "put", file).code)
	second := startServerProcess(t, "", store, lease...)

	path := built.Graphd(t)
	run := exec.Command(path, "run", "counting", "-t", "c1", "-i", `{"n": 0}`, "--step-limit", "2000",
		"--server", first.address)
	begun := newLockedBuffer()
	run.Stdout = begun
	require.NoError(t, run.Start())
	begun.waitForMatch(t, regexp.MustCompile("tick"))
	c := commandRunner{server: second.address}
	watched, leave := c.startCommand(t, "watch", "c1", "-e", "updates", "-o", "jsonl")
	watched.waitForMatch(t, regexp.MustCompile(`"step":40,`))
	first.Kill()
	require.NoError(t, run.Process.Kill())
	_ = run.Wait() // ended as it should
	watched.waitForMatch(t, regexp.MustCompile(`"step":1500,`))
	r := leave()
	require.Equal(t, 1500, strings.Count(r.out, `"update":{"values":{"n":1}}`))
	r = c.runCommand(t, "state", "c1", "-o", "json")
	require.Contains(t, r.out, `"n": 1500`)
}

func TestRedisThatDoesNotFit(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	for store, test := range map[string]struct {
		code int
		says []string
	}{
		server.URL(""):                       {1, []string{"allkeys-lru", "hint: ", "noeviction"}},
		"redis://127.0.0.1:1":                {1, []string{"127.0.0.1:1", "hint: start Redis"}},
		"redis://":                           {2, []string{"names no server", "redis://"}},
		"redis://u:sesame@h:port":            {2, []string{"can't be read", "redis://"}},
		server.URL("eviction=true&prefix={"): {2, []string{"brace"}},
	} {
		r := commandRunner{}.runCommand(t, "serve", "--listen", "127.0.0.1:0", "--store", store, "--log-level", "error")
		require.Equal(t, test.code, r.code, "%s: %s", store, r.err)
		for _, words := range test.says {
			require.Contains(t, r.err, words)
		}
		require.NotContains(t, r.err, "sesame")
	}
}
