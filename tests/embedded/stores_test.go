package embedded_test

import (
	"compress/gzip"
	"context"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver by which a test breaks a file

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// A thread whose checkpoint can't be read is not begun anew: the answer is refused, and no node runs.
func TestACheckpointThatCantBeRead(t *testing.T) {
	var calls counter
	path := filepath.Join(t.TempDir(), "app.db")
	g := graph.New("g").Channel("a").Channel("b").
		Node("first", func(context.Context, graph.State) (any, error) {
			calls.add("first")
			return map[string]any{"a": 1}, nil
		}).
		Node("ask", askInto("b", "on?")).
		Chain(graph.Start, "first", "ask", graph.End)
	p := open(t, graphd.SQLite(path), g)
	o := p.run("g", "t", `{}`)
	p.close()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	broken, err := db.ExecContext(t.Context(), `UPDATE checkpoints SET manifest = x'00'`)
	require.NoError(t, err)
	rows, err := broken.RowsAffected()
	require.NoError(t, err)
	require.Positive(t, rows)
	require.NoError(t, db.Close())

	p = open(t, graphd.SQLite(path), g)
	_, err = p.Resume(t.Context(), "t", client.AnswerTo(o.Questions[0], "yes"))
	require.ErrorIs(t, err, client.CheckpointCorrupt)
	_, err = p.Threads().GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: "t"})
	require.ErrorIs(t, client.FromGRPC(err), client.CheckpointCorrupt)
	require.Equal(t, 1, calls.of("first"))
	_, err = p.Threads().DeleteThread(t.Context(), &graphdv1.DeleteThreadRequest{ThreadId: "t"})
	require.NoError(t, err)
	_, err = p.Resume(t.Context(), "t", client.AnswerTo(o.Questions[0], "yes"))
	require.ErrorIs(t, err, client.ThreadNotFound)
}

// A step that the store does not take is no step: the run has not succeeded, further calls say why,
// and it goes on when the store takes changes again.
func TestAStoreThatTakesNoChanges(t *testing.T) {
	r := redistest.Start(t, "--appendfsync", "no")
	admin := goredis.NewClient(&goredis.Options{Addr: r.Addr()})
	t.Cleanup(func() { _ = admin.Close() })
	full, once := make(chan struct{}), sync.Once{}
	g := graph.New("g").Channel("n").
		Node("fills", func(ctx context.Context, _ graph.State) (any, error) {
			var err error
			once.Do(func() { // the node may run again: what it returned was not stored
				err = admin.ConfigSet(ctx, "maxmemory", "1").Err()
				close(full)
			})
			return map[string]any{"n": 1}, err
		}).
		Chain(graph.Start, "fills", graph.End)
	p := open(t, graphd.Redis(r.URL("")), g)
	run, err := p.Start(t.Context(), client.Run{Graph: "g", Thread: "t", Input: map[string]any{}})
	require.NoError(t, err)
	<-full
	_, err = p.Threads().CreateThread(t.Context(), &graphdv1.CreateThreadRequest{ThreadId: "t2"})
	require.ErrorIs(t, client.FromGRPC(err), client.StoreUnavailable)
	require.ErrorContains(t, err, "call again")
	got, err := p.Graphs().GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t", RunId: run.GetRunId()})
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_RUNNING, got.GetState())
	require.NoError(t, admin.ConfigSet(t.Context(), "maxmemory", "0").Err())
	o, err := p.Wait(t.Context(), "t", run.GetRunId())
	require.NoError(t, err)
	requireOutput(t, o, `{"n":1}`)
}

// A store that may lose single keys is refused, and one that was emptied is told.
func TestAStoreThatLosesKeys(t *testing.T) {
	r := redistest.Start(t, "--appendfsync", "no", "--maxmemory-policy", "allkeys-lru")
	g := graph.New("g").Channel("a").Node("ask", askInto("a", "on?")).Chain(graph.Start, "ask", graph.End)
	_, err := graphd.Open(t.Context(), graphd.Redis(r.URL("")), g)
	require.ErrorContains(t, err, "noeviction")
	admin := goredis.NewClient(&goredis.Options{Addr: r.Addr()})
	t.Cleanup(func() { _ = admin.Close() })
	require.NoError(t, admin.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	p := open(t, graphd.Redis(r.URL("")), g)
	o := p.run("g", "t", `{}`)
	require.NoError(t, admin.FlushAll(t.Context()).Err())
	require.Eventually(t, func() bool {
		_, err = p.Resume(t.Context(), "t", client.AnswerTo(o.Questions[0], "yes"))
		return err != nil
	}, time.Minute, 10*time.Millisecond)
	require.ErrorIs(t, err, client.StoreReplaced)
}

// A file of an earlier release is refused with what to do, and its threads go on after the migration.
func TestAFileOfAnEarlierRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	packed, err := os.Open("../upgrade/testdata/frozen/sqlite-6/graphd.db.gz")
	require.NoError(t, err)
	defer func() { _ = packed.Close() }()
	from, err := gzip.NewReader(packed)
	require.NoError(t, err)
	to, err := os.Create(path)
	require.NoError(t, err)
	_, err = io.Copy(to, io.LimitReader(from, 1<<30))
	require.NoError(t, err)
	require.NoError(t, to.Close())

	_, err = graphd.Open(t.Context(), graphd.SQLite(path))
	require.ErrorContains(t, err, "--migrate")
	p := openWith(t, graphd.SQLite(path), graphd.Options{Args: []string{"--migrate"}})
	open, err := p.Questions(t.Context(), "waiting")
	require.NoError(t, err)
	require.Len(t, open, 1)
	o := p.answer("waiting", client.AnswerTo(open[0], map[string]any{"ok": true}))
	got, err := client.Output[struct{ Verdict map[string]any }](o)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"ok": true}, got.Verdict)
}

// A thread stays with the graph that it began with. Where the process has not got its functions any
// more, the answer is refused with what is missing, and a process that has them takes it.
func TestAGraphThatHasChanged(t *testing.T) {
	newGraph := func(after string) *graph.Builder {
		return graph.New("g").Channel("a").Channel("by").
			Node("ask", askInto("a", "on?")).Node(after, say("by", after)).
			Chain(graph.Start, "ask", after, graph.End)
	}
	store := file(t)
	p := open(t, store, newGraph("before"))
	p.run("g", "t1", `{}`)
	p.run("g", "t2", `{}`)
	p.close()
	p = open(t, store, newGraph("after"))
	_, err := p.Resume(t.Context(), "t1", client.Answer{Value: "yes"})
	require.ErrorContains(t, err, "g: node before")
	require.ErrorIs(t, err, client.GraphVersionUnavailable)
	p.run("g", "t3", `{}`)
	requireOutput(t, p.answer("t3", client.Answer{Value: "yes"}), `{"a":"yes","by":"after"}`)
	p.close()
	p = open(t, store, newGraph("before"))
	requireOutput(t, p.answer("t2", client.Answer{Value: "yes"}), `{"a":"yes","by":"before"}`)
	requireOutput(t, p.answer("t1", client.Answer{Value: "yes"}), `{"a":"yes","by":"before"}`)
}
