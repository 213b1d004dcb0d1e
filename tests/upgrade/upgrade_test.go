package upgrade_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/built"
)

// listFrozen lists the stores that are kept.
func listFrozen(tb testing.TB) (names []string) {
	tb.Helper()
	entries, err := os.ReadDir(frozenDir)
	require.NoError(tb, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.NotEmpty(tb, names)
	return names
}

// TestStoresOfEarlierFormats goes on with what earlier graphds have left behind:
// today's refuses it and says how to migrate it, reads every thread as it was
// then, and takes the answers that threads have waited for.
func TestStoresOfEarlierFormats(t *testing.T) {
	for _, name := range listFrozen(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := restoreFrozen(t, name)
			if isOlder(t, at, name) {
				migrateStore(t, at)
			}
			if isForPeople(name) {
				requireDecisionsGoOn(t, at.store, storeFlags(name)...)
				return
			}
			s := startServer(t, built.Graphd(t), at.store, storeFlags(name)...)
			was := readFrozenContents(t, name)
			atRest := func(thread string) bool { return thread != "queued" }
			problems := was.selectThreads(atRest).listMissing(s.readContents().selectThreads(atRest))
			require.Empty(t, strings.Join(problems[:min(3, len(problems))], "\n"))
			s.requireThreadsGoOn()
		})
	}
}

// TestTodaysStores sees that what a server leaves behind that was killed is what
// the next one reads.
func TestTodaysStores(t *testing.T) {
	r := redistest.Start(t, "--appendfsync", "no")
	for kind, store := range map[string]string{
		"redis": r.URL(""), "sqlite": "sqlite:" + filepath.Join(t.TempDir(), "graphd.db"),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			createKnown(t, built.Graphd(t), store)
			s := startServer(t, built.Graphd(t), store, "--graphs", "testdata/graphs", "--lease", "5s")
			s.createThreads()
			atRest := func(thread string) bool { return thread != "queued" }
			was := s.readContents().selectThreads(atRest)
			for kind, who := range map[string]string{"runs": `"startedBy":"ana"`, "questions": `"responderHow":"api key"`} {
				require.Contains(t, strings.ReplaceAll(string(was["known "+kind]), ": ", ":"), who)
			}
			s.Kill()
			s = startServer(t, built.Graphd(t), store)
			problems := was.listMissing(s.readContents().selectThreads(atRest))
			require.Empty(t, strings.Join(problems[:min(3, len(problems))], "\n"))
			s.requireThreadsGoOn()
		})
	}
}

// TestTodaysDecisions sees that what is half decided on a server that was killed is decided on the
// next one.
func TestTodaysDecisions(t *testing.T) {
	r := redistest.Start(t, "--appendfsync", "no")
	sealed := storeFlags("-sealed")
	for name, store := range map[string]string{
		"redis": r.URL(""), "sqlite": "sqlite:" + filepath.Join(t.TempDir(), "graphd.db"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			createDecisions(t, store, sealed...)
			requireDecisionsGoOn(t, store, sealed...)
		})
	}
}

// isOlder reports whether today's graphd refuses a store, in words that say what
// to do.
func isOlder(t *testing.T, at storeLocation, name string) bool {
	t.Helper()
	code, said := runCommand(t, built.Graphd(t), "store", "migrate", "--dry-run", "--store", at.store)
	require.Zero(t, code, said)
	if strings.Contains(said, "nothing to do") {
		return false
	}
	code, said = runCommand(t, built.Graphd(t), append([]string{"serve", "--listen", "127.0.0.1:0", "--store", at.store}, storeFlags(name)...)...)
	require.Equal(t, 1, code, said)
	require.Contains(t, said, "graphd store migrate --store "+at.store)
	require.Contains(t, said, "--migrate")
	return true
}

func migrateStore(t *testing.T, at storeLocation) {
	t.Helper()
	code, said := runCommand(t, built.Graphd(t), "store", "migrate", "--store", at.store)
	require.Zero(t, code, said)
	require.Contains(t, said, "migrated: the store from format ")
	code, said = runCommand(t, built.Graphd(t), "store", "migrate", "--store", at.store)
	require.Zero(t, code, said)
	require.Contains(t, said, "nothing to do")
}

// requireThreadsGoOn answers what waits, and sees that runs end as they must.
func (s *server) requireThreadsGoOn() {
	s.tb.Helper()
	for thread, want := range map[string]string{
		"waiting":        `{"node":"decide","ok":true},"closed"]`,
		"waiting-here":   `{"node":"decide","ok":true},"closed"]`,
		"waiting-large":  `{"node":"decide","ok":true},"closed"]`,
		"copied":         `{"node":"decide","ok":true},"closed"]`,
		"waiting-below":  `"done":"done"`,
		"waiting-beside": `"end":2`,
	} {
		answer := `{"ok":true,"why":"weeks later"}`
		if thread == "waiting-beside" {
			answer = `"second"`
		}
		run := s.answerOldest(thread, answer, true)
		require.Equal(s.tb, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), "%s: %s", thread, run.GetFailure())
		require.Contains(s.tb, run.GetOutput().GetJson(), want, thread)
	}
	s.requirePaymentsGoOn()
	again := s.runUntilStopped("long", "loop", `{"text":"again","limit":32}`)
	require.Equal(s.tb, graphdv1.RunState_RUN_STATE_SUCCEEDED, again.GetState(), again.GetFailure())
	require.Contains(s.tb, again.GetOutput().GetJson(), `{"n":31,"text":"again"}`)
	require.Contains(s.tb, again.GetOutput().GetJson(), largeText(400))
}

// requirePaymentsGoOn goes on with what waits for a worker: the interrupt whose memo is kept, and
// the runs that never began.
func (s *server) requirePaymentsGoOn() {
	s.tb.Helper()
	worker := s.startPayWorker(s.tb)
	run := s.answerOldest("waiting-paid", `"yes"`, true)
	require.Equal(s.tb, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), run.GetFailure())
	require.JSONEq(s.tb, `{"amount":9007199254740993,"receipt":{"charged":9007199254740993},"log":["yes","paid 9007199254740993"]}`,
		run.GetOutput().GetJson())
	runs, err := s.ListRuns(s.tb.Context(), &graphdv1.ListRunsRequest{ThreadId: "queued"})
	require.NoError(s.tb, err)
	require.Len(s.tb, runs.GetRuns(), 3)
	for i := range runs.GetRuns() {
		id := runs.GetRuns()[2-i].GetRunId()
		run, err := s.WaitRun(s.tb.Context(), &graphdv1.WaitRunRequest{ThreadId: "queued", RunId: id, Wait: durationpb.New(waitTimeout)})
		require.NoError(s.tb, err)
		require.Equal(s.tb, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
		run = s.answerOldest("queued", `"`+id+`"`, true)
		require.Equal(s.tb, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), run.GetFailure())
	}
	require.EqualValues(s.tb, 3, worker.charges.Load(), "what was paid before is not paid again")
}

// TestEachFormatIsFrozen sees that stores of every number are kept but of the one
// that is in the making.
func TestEachFormatIsFrozen(t *testing.T) {
	for kind, folder := range map[string]string{"redis": "redis", "sqlite": "sqlite"} {
		listings, err := filepath.Glob("../../internal/checkpoint/" + folder + "/testdata/format-*.txt")
		require.NoError(t, err)
		require.NotEmpty(t, listings)
		var missing []string
		for _, file := range listings {
			number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "format-"), ".txt")
			for _, name := range []string{kind + "-" + number, kind + "-" + number + "-sealed"} {
				if _, err := os.Stat(filepath.Join(frozenDir, name)); err != nil {
					missing = append(missing, number)
				}
			}
		}
		newest := filepath.Base(listings[len(listings)-1])
		for _, number := range missing {
			require.Equal(t, "format-"+number+".txt", newest, "no store of %s of format %s is kept: make freeze on the commit that had it", kind, number)
		}
	}
}
