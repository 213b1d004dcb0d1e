package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/testkit/built"
)

// countingGraph takes one superstep per number, so that a server can be ended in
// the middle of it.
const countingGraph = `
graph: counting
channels: { n: {reducer: add, default: 0} }
nodes:
  tick: { expr: { update: { n: "1" }, goto: "state.n < 1499 ? 'tick' : '__end__'" }, destinations: [tick] }
edges: [ START -> tick ]
`

func TestAKilledServerLosesNothing(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "g.db")
	first := startServerProcess(t, "", store)
	c := commandRunner{server: first.address}
	r := c.runCommand(t, "run", "refund-review", "--thread", "t1", "--input", refundInput)
	require.Equal(t, 3, r.code, r.err)
	first.Kill()
	require.Equal(t, 1, c.runCommand(t, "inbox").code, "no server should listen")

	second := startServerProcess(t, first.address, store)
	c.server = second.address
	r = c.runCommand(t, "inbox")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "Refund requested: I want a refund for order 8841")
	r = c.runCommand(t, "resume", "t1", "--value", `{"decision": "approved"}`)
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "Your refund has been approved")
	r = c.runCommand(t, "state", "t1", "-o", "json")
	require.Contains(t, r.out, `"user_id": 9007199254740993`)
	requireLinear(t, c, "t1", 5)
}

// A stream continues over a drain and a kill: every update is shown once.
func TestAStreamOutlivesItsServers(t *testing.T) {
	dir := t.TempDir()
	store, file := "sqlite:"+filepath.Join(dir, "g.db"), filepath.Join(dir, "counting.yaml")
	require.NoError(t, os.WriteFile(file, []byte(countingGraph), 0o600))
	server := startServerProcess(t, "", store)
	address := server.address
	require.Equal(t, 0, commandRunner{server: address}.runCommand(t, "graph", "put", file).code)

	path := built.Graphd(t)
	out, complaints := newLockedBuffer(), newLockedBuffer()
	run := exec.Command(path, "run", "counting", "-t", "c1", "-i", `{"n": 0}`, "-e", "updates", "-o", "jsonl",
		"--step-limit", "2000", "--server", address)
	run.Stdout, run.Stderr = out, complaints
	require.NoError(t, run.Start())

	out.waitForMatch(t, regexp.MustCompile(`"step":40,`))
	server.Stop(syscall.SIGTERM)
	require.Equal(t, "exit status 0", server.EndState(), "a drain ends well")
	out.waitForMatch(t, regexp.MustCompile("CAUSE_DRAINING")) // which the command may write after the server has ended
	server = startServerProcess(t, address, store)
	out.waitForMatch(t, regexp.MustCompile(`"step":400,`))
	server.Kill()
	startServerProcess(t, address, store)
	require.NoError(t, run.Wait(), complaints)
	require.Equal(t, 1500, strings.Count(out.String(), `"update":{"values":{"n":1}}`))

	last := out.String()[strings.LastIndex(strings.TrimSpace(out.String()), "\n")+1:]
	var end struct {
		End struct {
			Run struct{ Output json.RawMessage }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(last), &end))
	require.JSONEq(t, `{"n": 1500}`, string(end.End.Run.Output))
}

func TestTwoServersDoNotShareAPortOrAStore(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "g.db")
	first := startServerProcess(t, "", store)
	for listen, says := range map[string]string{
		first.address: "address already in use",
		"127.0.0.1:0": "is in use by pid",
	} {
		r := commandRunner{}.runCommand(t, "serve", "--listen", listen, "--store", store, "--log-level", "error")
		require.Equal(t, 1, r.code, r.err)
		require.Contains(t, r.err, says)
		require.Contains(t, r.err, "hint: ")
	}
	r := commandRunner{}.runCommand(t, "serve", "--listen", "127.0.0.1:0", "--store", "sqlite:/no/such/dir/g.db", "--log-level", "error")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "/no/such/dir/g.db")
}

// The command that a waiting demo prints is pasted into a shell.
func TestTheDemoNamesACommandThatResumes(t *testing.T) {
	path := built.Graphd(t)
	dir := t.TempDir()
	demo := exec.Command(path, "demo")
	demo.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "it's here"))
	var out bytes.Buffer
	demo.Stdout = &out
	var exit *exec.ExitError
	require.ErrorAs(t, demo.Run(), &exit)
	require.Equal(t, 3, exit.ExitCode())

	command := regexp.MustCompile(`(?m)^  (.*graphd demo resume .*)$`).FindStringSubmatch(out.String())
	require.NotNil(t, command, out.String())
	pasted, err := exec.Command("sh", "-c", command[1]).CombinedOutput()
	require.NoError(t, err, string(pasted))
	require.Contains(t, string(pasted), "Your refund has been approved")

	left, err := os.ReadDir(filepath.Join(dir, "it's here", "graphd"))
	require.NoError(t, err)
	require.Empty(t, left, "a demo that has ended leaves nothing behind")
	again, err := exec.Command("sh", "-c", command[1]).CombinedOutput()
	require.ErrorAs(t, err, &exit)
	require.Contains(t, string(again), "no demo waits in")
}

func TestTheVersionIsThatOfTheBuild(t *testing.T) {
	path := built.Graphd(t)
	out, err := exec.Command(path, "version").Output()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(out), "graphd "+built.Version()+" "), string(out))
}
