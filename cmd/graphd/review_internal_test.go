package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/server"
)

// An interrupt, its answer and the history, on each store that is built in.
func TestAQuestionIsAskedAnsweredAndRemembered(t *testing.T) {
	for name, store := range map[string]string{
		"memory": "memory", "sqlite": "sqlite:" + filepath.Join(t.TempDir(), "g.db"),
		"redis": redistest.Start(t).URL(""),
	} {
		t.Run(name, func(t *testing.T) {
			c := startServer(t, store)
			r := c.runCommand(t, "run", "refund-review", "--thread", "t1", "--input", refundInput)
			require.Equal(t, 3, r.code, r.err)
			require.Contains(t, r.out, "__interrupt__")
			require.Contains(t, r.out, "9007199254740993")
			require.Contains(t, r.out, "graphd resume t1 --server "+c.server)

			r = c.runCommand(t, "inbox")
			require.Equal(t, 0, r.code, r.err)
			require.Contains(t, r.out, "Refund requested: I want a refund for order 8841  ")
			require.Contains(t, r.err, "1 open question\n")
			r = c.runCommand(t, "inbox", "--thread", "t1")
			require.Contains(t, r.out, "human_review asks (approval)")

			r = c.runCommand(t, "resume", "t1", "--value", `{"decision": "perhaps"}`)
			require.Equal(t, 1, r.code)
			require.Contains(t, r.err, "RESPONSE_SCHEMA_MISMATCH")
			require.Contains(t, r.err, "decision")

			r = c.runCommand(t, "resume", "t1", "--value", `{"decision": "approved_with_conditions", "conditions": "10% fee"}`)
			require.Equal(t, 0, r.code, r.err)
			require.Contains(t, r.out, "under this condition: 10% fee")

			r = c.runCommand(t, "resume", "t1", "--value", `{"decision": "approved"}`)
			require.Equal(t, 1, r.code)
			require.Contains(t, r.err, "THREAD_NOT_INTERRUPTED")
			require.Contains(t, r.err, "hint:")
			requireLinear(t, c, "t1", 5)
		})
	}
}

// requireLinear checks that each checkpoint is the parent of the next.
func requireLinear(t *testing.T, c commandRunner, thread string, count int) {
	t.Helper()
	r := c.runCommand(t, "history", thread, "-o", "jsonl")
	require.Equal(t, 0, r.code, r.err)
	type ref struct{ CheckpointID string }
	var newest *ref
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Len(t, lines, count)
	for i, line := range lines {
		var state struct{ Checkpoint, Parent *ref }
		require.NoError(t, json.Unmarshal([]byte(line), &state), line)
		if newest != nil {
			require.Equal(t, newest, state.Checkpoint, "history forks before entry %d", i)
		}
		newest = state.Parent
	}
	require.Nil(t, newest, "the oldest checkpoint has a parent")
}

func TestValuesComeFromFlagsFilesAndStandardInput(t *testing.T) {
	c := startServer(t, "memory")
	file := filepath.Join(t.TempDir(), "in.json")
	require.NoError(t, os.WriteFile(file, []byte("\ufeff"+refundInput+"\n"), 0o600))
	r := c.runCommand(t, "run", "refund-review", "-t", "a", "--input", "@"+file)
	require.Equal(t, 3, r.code, r.err)
	c.stdin = refundInput
	r = c.runCommand(t, "run", "refund-review", "-t", "b", "--input", "-", "--detach", "-o", "json")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, `"threadId": "b"`)
	r = c.runCommand(t, "watch", "b", "--run", jsonField(t, r.out, "runId"))
	require.Equal(t, 3, r.code, r.err)
	require.Contains(t, r.out, "__interrupt__")
}

func jsonField(t *testing.T, document, name string) string {
	t.Helper()
	var all map[string]any
	require.NoError(t, json.Unmarshal([]byte(document), &all), document)
	text, ok := all[name].(string)
	require.True(t, ok, "%s has no %s", document, name)
	return text
}

func TestOutputIsReadableJSON(t *testing.T) {
	c := startServer(t, "memory")
	r := c.runCommand(t, "run", "refund-review", "-t", "a", "-i", refundInput, "-e", "values,updates", "-o", "jsonl")
	require.Equal(t, 3, r.code, r.err)
	kinds := map[string]bool{}
	for line := range strings.Lines(r.out) {
		var event map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &event), line)
		for kind := range event {
			kinds[kind] = true
		}
	}
	for _, kind := range []string{"opened", "update", "values", "interrupt", "end"} {
		require.True(t, kinds[kind], "no event %s in %s", kind, r.out)
	}
	require.Contains(t, r.out, `"user_id":9007199254740993`)

	r = c.runCommand(t, "run", "refund-review", "-t", "b", "-i", `{"user_id": 1, "user_request": "hello"}`, "-o", "json")
	require.Equal(t, 0, r.code, r.err)
	require.Equal(t, "RUN_STATE_SUCCEEDED", jsonField(t, r.out, "state"))

	for _, args := range [][]string{
		{"state", "a"},
		{"inbox"},
		{"history", "a"},
		{"threads"},
		{"graph", "list"},
		{"graph", "show", "refund-review"},
		{"health"},
		{"version"},
	} {
		r = c.runCommand(t, append(args, "-o", "json")...)
		require.Equal(t, 0, r.code, "%v: %s", args, r.err)
		require.True(t, json.Valid([]byte(r.out)), "%v: %s", args, r.out)
		r = c.runCommand(t, args...)
		require.Equal(t, 0, r.code, "%v: %s", args, r.err)
		require.NotEmpty(t, r.out, args)
	}
	r = c.runCommand(t, "state", "a", "-o", "json")
	require.Contains(t, r.out, `"user_id": 9007199254740993`)
}

func TestExitCodesAndWhatIsSaid(t *testing.T) {
	c := startServer(t, "memory")
	require.Equal(t, 3, c.runCommand(t, "run", "refund-review", "-t", "open", "-i", refundInput).code)
	for _, test := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"run", "refund-review", "-t", "x", "-i", `{"user_id": 1, "user_request": "hi"}`}, 0, nil},
		{
			[]string{"run", "refund-review", "-t", "y", "-i", `{"user_id": 1, "user_request": "hi"}`, "--step-limit", "1"},
			4, nil,
		},
		{
			[]string{"run", "refund-review", "-t", "open", "-i", refundInput},
			1,
			[]string{"THREAD_INTERRUPTED", "openInterruptIds", "inbox --thread open"},
		},
		{[]string{"run", "refund-review", "-t", "open", "-i", refundInput, "--on-open", "discard"}, 3, nil},
		{[]string{"run", "refund-reviw", "-i", "{}"}, 1, []string{"GRAPH_NOT_FOUND", "graph list"}},
		{[]string{"state", "nobody"}, 1, []string{"THREAD_NOT_FOUND", "nobody", "threads"}},
		{[]string{"graph", "show", "nothing"}, 1, []string{"GRAPH_NOT_FOUND"}},
		{[]string{"run"}, 2, []string{"GRAPH is missing"}},
		{[]string{"run", "refund-review", "--inptu", "{}"}, 2, []string{"unknown flag: --inptu", `did you mean "--input"?`}},
		{[]string{"run", "refund-review", "-i", "{a: 1}"}, 2, []string{"--input", "not JSON", "hint:"}},
		{[]string{"run", "refund-review", "-i", `{} {}`}, 2, []string{"more after the value"}},
		{[]string{"run", "refund-review", "-i", "@/no/such/file"}, 2, []string{"/no/such/file"}},
		{[]string{"run", "refund-review", "-i", "{}", "-e", "update"}, 2, []string{"--events", "updates"}},
		{[]string{"run", "refund-review", "-i", "{}", "--on-busy", "wait"}, 2, []string{"--on-busy", "enqueue"}},
		{[]string{"resume", "open", "--answer", "yes"}, 2, []string{"ID=JSON", "--value"}},
		{[]string{"resume", "open", "--interrupt", "i1"}, 2, []string{"--value"}},
		{[]string{"resume", "open", "extra"}, 2, []string{`unexpected argument "extra"`}},
		{[]string{"resume", "open"}, 1, []string{"1 open question is not answered", "one question is open", "--value JSON"}},
		{[]string{"resume", "open", "--value", "{decision: approved}"}, 2, []string{"not JSON", "want JSON, @FILE, or - for standard input\n"}},
		{
			[]string{"resume", "open", "--value", `{"decision": "approved_with_conditions"}`},
			1,
			[]string{"RESPONSE_SCHEMA_MISMATCH: conditions: is missing\n  interruptId"},
		},
		{[]string{"update", "open", "--values", `{"request_type": "x"}`}, 1, []string{"drop 1 open question;", "--supersede"}},
		{[]string{"inbox", "--thread", "nope"}, 1, []string{"THREAD_NOT_FOUND", "nope"}},
		{[]string{"watch", "open", "--from", "somewhere"}, 2, []string{"LOG:SEQUENCE"}},
		{[]string{"update", "open"}, 2, []string{"values"}},
		{[]string{"threads", "lits"}, 2, []string{"unknown command", "list"}},
		{[]string{"rum"}, 2, []string{"unknown command", "run"}},
		{[]string{"inbox", "--priority", "hihg"}, 2, []string{`--priority "hihg" is not one of high, low, normal, urgent`}},
		{[]string{"inbox", "--priority", "normal"}, 2, []string{"--priority normal", "--graph"}},
		{[]string{"inbox", "--sort", "dew"}, 2, []string{`--sort "dew" is not one of created, due`}},
		{[]string{"inbox", "--sort", "created", "--due", "2h"}, 2, []string{"--due lists by due time", "leave --sort out"}},
		{[]string{"inbox", "--sort", "due", "--thread", "open"}, 2, []string{"leave --sort or --thread out"}},
		{[]string{"inbox", "--due", "soon"}, 2, []string{`--due "soon" is no time`, "2h", "2026-11-23T09:00:00Z"}},
		{[]string{"inbox", "--due", "9999-01-01"}, 2, []string{`--due "9999-01-01" is no time`}},
		{[]string{"inbox", "--due", "2h", "--thread", "open"}, 2, []string{"leave --due or --thread out"}},
		{[]string{"inbox", "--group", ""}, 2, []string{"--group is empty"}},
		{[]string{"inbox", "--graph", "refund-reviw"}, 2, []string{`--graph "refund-reviw"`, "it has refund-review"}},
		{[]string{"inbox", "--graph", "refund-review@v1"}, 2, []string{"has a version", "--graph refund-review"}},
		{[]string{"inbox", "--claimed-by", "ana", "--watch"}, 2, []string{"--claimed-by can't be watched"}},
		{[]string{"inbox", "--sort", "due", "--watch"}, 2, []string{"--sort and --watch"}},
		{[]string{"inbox", "--mine"}, 2, []string{"--mine needs a server that knows its callers", "--group"}},
		{[]string{"inbox", "show"}, 2, []string{"THREAD is missing"}},
		{[]string{"inbox", "show", "open", "--interrupt", "zz"}, 1, []string{"INTERRUPT_NOT_FOUND"}},
		{[]string{"inbox", "-o", "xml"}, 2, []string{"text, json and jsonl"}},
		{[]string{"serve", "--store", "redis"}, 2, []string{"redis://HOST:PORT/DB"}},
		{[]string{"serve", "--store", "file.db"}, 2, []string{"sqlite:PATH"}},
		{[]string{"serve", "--log-level", "loud"}, 2, []string{"debug, info, warn, error"}},
		{[]string{"serve", "--drain-timeout", "soon"}, 2, []string{"drain-timeout"}},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			r := c.runCommand(t, test.args...)
			require.Equal(t, test.code, r.code, "%s%s", r.out, r.err)
			for _, words := range test.says {
				require.Contains(t, r.err, words)
			}
			require.NotContains(t, r.err, "pass@")
			if test.code == 1 || test.code == 2 {
				require.Contains(t, r.err, "error: ")
				require.Contains(t, r.err, "hint: ")
				require.Empty(t, r.out)
			}
		})
	}
}

func TestErrorsForPrograms(t *testing.T) {
	c := startServer(t, "memory")
	r := c.runCommand(t, "state", "nobody", "-o", "json")
	require.Equal(t, 1, r.code)
	var said struct {
		Error struct{ Code, Reason, Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.err), &said), r.err)
	require.Equal(t, "NOT_FOUND", said.Error.Code)
	require.Equal(t, "THREAD_NOT_FOUND", said.Error.Reason)
}

func TestNoServer(t *testing.T) {
	c := commandRunner{server: "127.0.0.1:1"}
	for _, args := range [][]string{{"inbox"}, {"health"}, {"run", "g", "-i", "{}"}} {
		r := c.runCommand(t, args...)
		require.Equal(t, 1, r.code, args)
		require.Contains(t, r.err, "no answer from 127.0.0.1:1")
		require.Contains(t, r.err, "graphd serve")
	}
}

func TestBreakpointsTimeTravelForksAndUpdates(t *testing.T) {
	c := startServer(t, "memory")
	in := `{"user_id": 1, "user_request": "hi"}`
	r := c.runCommand(t, "run", "refund-review", "-t", "a", "-i", in, "--interrupt-before", "execute")
	require.Equal(t, 3, r.code, r.err)
	require.Contains(t, r.out, "graphd resume a --server")
	r = c.runCommand(t, "update", "a", "--values", `{"request_type": "changed"}`, "--as-node", "human_review", "--supersede", "-o", "json")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, `"request_type": "changed"`)
	r = c.runCommand(t, "run", "refund-review", "-t", "a")
	require.Equal(t, 0, r.code, "%s%s", r.out, r.err)
	require.Contains(t, r.out, `"changed"`)
	r = c.runCommand(t, "threads", "fork", "a", "b")
	require.Equal(t, 0, r.code, r.err)
	r = c.runCommand(t, "threads", "list", "-o", "jsonl")
	require.Equal(t, 2, strings.Count(r.out, "\n"), r.out)
	require.Equal(t, 0, c.runCommand(t, "threads", "delete", "b").code)
	r = c.runCommand(t, "watch", "a", "--no-follow", "-e", "checkpoints")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "end of the log, cursor ")
	r = c.runCommand(t, "cancel", "a")
	require.Equal(t, 0, r.code, r.err)
}

func TestGraphFiles(t *testing.T) {
	c := startServer(t, "memory")
	good, bad := filepath.Join(examplesDir, "graph.yaml"), filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("graph: bad\nchannels: {a: {reducer: sum}}\nnodes:\n  n: {expr: {update: {a: 'state.'}}}\nedges: [START -> m]\n"), 0o600))
	offline := commandRunner{server: "127.0.0.1:1"}
	r := offline.runCommand(t, "graph", "check", good)
	require.Equal(t, 0, r.code, r.err)
	r = offline.runCommand(t, "graph", "check", good, bad)
	require.Equal(t, 1, r.code)
	for _, words := range []string{"bad.yaml:2: ", "sum", "bad.yaml:4: ", "bad.yaml:5: "} {
		require.Contains(t, r.err, words)
	}
	fromFile := offline.runCommand(t, "graph", "draw", good)
	require.Equal(t, 0, fromFile.code, fromFile.err)
	require.Contains(t, fromFile.out, "flowchart TD")
	fromServer := c.runCommand(t, "graph", "draw", "refund-review")
	require.Equal(t, fromFile.out, fromServer.out, fromServer.err)
	r = c.runCommand(t, "graph", "put", bad)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "INVALID_GRAPH")
	for _, words := range []string{"line 2", "line 4", "line 5"} {
		require.Equal(t, 1, strings.Count(r.err, words), r.err)
	}
	for _, problem := range []string{"bad.yaml:2: ", "bad.yaml:4: ", "bad.yaml:5: "} {
		require.Equal(t, 1, strings.Count(offline.runCommand(t, "graph", "check", bad).err, problem))
	}
	require.Equal(t, 0, c.runCommand(t, "graph", "put", good).code)
}

func TestTheInboxAndAThreadAreWatchedUntilOneLeaves(t *testing.T) {
	c := startServer(t, "memory")
	inbox, leaveInbox := c.startCommand(t, "inbox", "--watch")
	require.Equal(t, 3, c.runCommand(t, "run", "refund-review", "-t", "a", "-i", refundInput).code)
	thread, leaveThread := c.startCommand(t, "watch", "a")
	inbox.waitForMatch(t, regexp.MustCompile(`a  open  `))
	thread.waitForMatch(t, regexp.MustCompile(`run [0-9a-f]+ interrupted`))
	require.Equal(t, 0, c.runCommand(t, "resume", "a", "--value", `{"decision": "rejected"}`).code)
	inbox.waitForMatch(t, regexp.MustCompile(`a  consumed  `))
	thread.waitForMatch(t, regexp.MustCompile(`run [0-9a-f]+ succeeded`))
	require.Equal(t, 0, leaveInbox().code)
	r := leaveThread()
	require.Equal(t, 0, r.code)
	from := regexp.MustCompile(`graphd watch a --from (\S+)`).FindStringSubmatch(r.err)
	require.NotNil(t, from, r.err)
	r = c.runCommand(t, "watch", "a", "--from", from[1], "--no-follow")
	require.Equal(t, 0, r.code, r.err)
	require.NotContains(t, r.out, "succeeded", "the cursor is past it")
}

func TestWhoLeavesTheInboxWhileTheServerIsAwayMeetsNoError(t *testing.T) {
	s, err := server.NewServer(t.Context(), server.Options{Listen: "127.0.0.1:0", Store: "memory", Graphs: []string{examplesDir}}, zap.NewNop(), "test")
	require.NoError(t, err)
	s.StartServing()
	c := commandRunner{server: s.Address()}
	require.Equal(t, 3, c.runCommand(t, "run", "refund-review", "-t", "a", "-i", refundInput).code)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	out, complaints, ended := newLockedBuffer(), newLockedBuffer(), make(chan int, 1)
	go func() { ended <- c.executeCommand(ctx, out, complaints, []string{"inbox", "--watch"}) }()
	out.waitForMatch(t, regexp.MustCompile(`a  open  `))
	require.NoError(t, s.DrainServer(t.Context()))
	complaints.waitForMatch(t, regexp.MustCompile(`looking for the server again`))
	leave()
	require.Zero(t, <-ended)
	require.NotContains(t, complaints.String(), "error:")
}

func TestAnEditWithAnUnknownKeyIsRefused(t *testing.T) {
	c := startServer(t, "memory")
	require.Equal(t, 3, c.runCommand(t, "run", "refund-review", "-t", "u", "-i", refundInput).code)
	before := c.runCommand(t, "history", "u").out
	r := c.runCommand(t, "update", "u", "--values", `{"nokey": 1, "request_type": "x"}`, "--as-node", "analyze", "--supersede")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, `INVALID_FIELD: "nokey" is no channel; known: analysis_result`)
	require.Equal(t, before, c.runCommand(t, "history", "u").out)
}

func TestAServerHasAPort(t *testing.T) {
	r := commandRunner{}.runCommand(t, "inbox", "--server", "foo")
	require.Equal(t, 2, r.code)
	require.Equal(t, "error: --server foo names no port\nhint: want HOST:PORT, like 127.0.0.1:7700\n", r.err)
	r = commandRunner{}.runCommand(t, "inbox", "--server", "redis://localhost:6379")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.err, "--server redis:// is no address of a server\nhint: want HOST:PORT, like 127.0.0.1:7700\n")
	for _, list := range []string{"ipv4:10.0.0.1:7700,10.0.0.2:7700", "ipv4:10.0.0.1:7700", "a:7700,b:7700"} {
		r = commandRunner{}.runCommand(t, "inbox", "--server", list)
		require.Equal(t, 2, r.code)
		require.Contains(t, r.err, "is a list of addresses")
		require.Contains(t, r.err, "dns:///graphd.internal:7700")
	}
}

func TestListsForProgramsAreThereWhenEmpty(t *testing.T) {
	c := startServer(t, "memory")
	for list, args := range map[string][]string{
		"interrupts": {"inbox"}, "threads": {"threads", "list"},
	} {
		r := c.runCommand(t, append(args, "-o", "json")...)
		require.Equal(t, 0, r.code, r.err)
		require.JSONEq(t, `{"`+list+`": []}`, r.out)
	}
}

func TestARunThatWaitsBringsItsQuestions(t *testing.T) {
	c := startServer(t, "memory")
	r := c.runCommand(t, "run", "refund-review", "-t", "w", "-i", refundInput, "-o", "json")
	require.Equal(t, 3, r.code, r.err)
	var run struct {
		State      string
		Interrupts []struct{ InterruptID, Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &run), r.out)
	require.Equal(t, "RUN_STATE_INTERRUPTED", run.State)
	require.Len(t, run.Interrupts, 1)
	require.Contains(t, run.Interrupts[0].Message, "Refund requested")

	// The beginning of its id is enough to answer it.
	id := run.Interrupts[0].InterruptID
	r = c.runCommand(t, "resume", "w", "--answer", id[:6]+`={"decision":"rejected"}`)
	require.Equal(t, 0, r.code, r.err)
	r = c.runCommand(t, "resume", "w", "--answer", id+`={"decision":"approved"}`)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "was answered already")
	require.NotContains(t, r.err, "responder")
	r = c.runCommand(t, "cancel", "w")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "had already succeeded; nothing to cancel")
	r = c.runCommand(t, "inbox", "--thread", "w", "--filter", `state = "CONSUMED"`)
	require.Contains(t, r.out, `answered  {"decision":"rejected"}`)
}

func TestGraphFilesForPrograms(t *testing.T) {
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, []byte("graph: w\nchannels: [x]\nnodes: {}\nedges: [START -> a]\n"), 0o600))
	none := filepath.Join(dir, "none.yaml")
	r := commandRunner{}.runCommand(t, "graph", "check", wrong, none, "-o", "json")
	require.Equal(t, 1, r.code)
	require.Empty(t, r.err)
	require.JSONEq(t, `[
		{"file": "`+none+`", "message": "can't read `+none+`: no such file or directory"},
		{"file": "`+wrong+`", "line": 4, "path": "edges[0]", "reason": "UNKNOWN_NODE", "message": "unknown node \"a\"; known: END"}
	]`, r.out)
	r = commandRunner{}.runCommand(t, "graph", "check", none)
	require.Equal(t, 1, r.code)
	require.Equal(t, "error: can't read "+none+": no such file or directory\n", r.err)
	r = commandRunner{}.runCommand(t, "graph", "check", filepath.Join(examplesDir, "graph.yaml"), "-o", "json")
	require.Equal(t, 0, r.code)
	require.JSONEq(t, `[]`, r.out)
	r = commandRunner{}.runCommand(t, "graph", "draw", filepath.Join(examplesDir, "graph.yaml"), "-o", "json")
	require.Equal(t, 0, r.code, r.err)
	var drawn struct{ Graph, Mermaid string }
	require.NoError(t, json.Unmarshal([]byte(r.out), &drawn))
	require.Contains(t, drawn.Mermaid, "flowchart TD")
}

func TestAFailureOfSeveralNodesIsToldOnce(t *testing.T) {
	c := startServer(t, "memory")
	file := filepath.Join(t.TempDir(), "twice.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
graph: twice
channels: { log: append }
nodes:
  b: { expr: { update: { log: "'one'" } } }
  c: { expr: { update: { log: "'one'" } } }
edges: ["START -> [b, c]"]
`), 0o600))
	require.Equal(t, 0, c.runCommand(t, "graph", "put", file).code)
	r := c.runCommand(t, "run", "twice", "-t", "d", "-i", "{}")
	require.Equal(t, 4, r.code)
	require.Contains(t, r.out, "b, c: INVALID_NODE_UPDATE: channel log")
	r = c.runCommand(t, "state", "d")
	require.Equal(t, 1, strings.Count(r.out, "INVALID_NODE_UPDATE"), r.out)
	require.Contains(t, r.out, "b, c: INVALID_NODE_UPDATE")
}

func TestARunThatNobodyWorksOnSaysSo(t *testing.T) {
	c := startServer(t, "memory")
	file := filepath.Join(t.TempDir(), "away.yaml")
	require.NoError(t, os.WriteFile(file, []byte(
		"graph: away\nchannels: { x: {} }\nnodes: { think: { remote: {} } }\nedges: [START -> think]\n"), 0o600))
	require.Equal(t, 0, c.runCommand(t, "graph", "put", file).code)
	run, leave := c.startCommand(t, "run", "away", "-t", "a", "-i", `{"x": 1}`)
	run.waitForMatch(t, regexp.MustCompile(`think: no worker of graph away is connected; the task waits`))
	r := leave()
	require.Equal(t, 1, r.code)
	require.NotContains(t, r.out, "scheduled", "other events of tasks are for those who ask for them")
	r = c.runCommand(t, "watch", "a", "--no-follow", "--events", "tasks")
	require.Contains(t, r.out, "think scheduled")
	require.Contains(t, r.out, "NO_WORKER_AVAILABLE")
	r = c.runCommand(t, "watch", "a", "--no-follow", "-o", "jsonl")
	require.Contains(t, r.out, "NO_WORKER_AVAILABLE", "what waits for an operator is told to every stream")
}

func TestAGraphIsDeletedAndPutAgain(t *testing.T) {
	c := startServer(t, "memory")
	require.Equal(t, 3, c.runCommand(t, "run", "refund-review", "-t", "a", "-i", refundInput).code)
	r := c.runCommand(t, "graph", "delete", "refund-review")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "GRAPH_IN_USE")
	require.Contains(t, r.err, "a")
	r = c.runCommand(t, "graph", "delete", "refund-review", "--version", "none")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "GRAPH_VERSION_UNAVAILABLE")
	r = c.runCommand(t, "graph", "delete", "refund-review", "--force")
	require.Equal(t, 0, r.code, r.err)
	require.Regexp(t, `^refund-review  version \S+  deleted\n$`, r.out)
	require.NotContains(t, c.runCommand(t, "graph", "list").out, "refund-review")
	r = c.runCommand(t, "resume", "a", "--value", `{"decision": "rejected"}`)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "GRAPH_VERSION_UNAVAILABLE")
	require.Contains(t, c.runCommand(t, "inbox").out, "a", "the question stays")
	require.Equal(t, 0, c.runCommand(t, "graph", "put", filepath.Join(examplesDir, "graph.yaml")).code)
	r = c.runCommand(t, "resume", "a", "--value", `{"decision": "rejected"}`)
	require.Equal(t, 0, r.code, r.err)
	require.Equal(t, 0, c.runCommand(t, "threads", "delete", "a").code)
	require.Equal(t, 0, c.runCommand(t, "graph", "delete", "refund-review").code)
}
