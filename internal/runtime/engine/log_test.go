package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// TestAFailedRunIsLogged fails runs of a graph that only computes, which end in
// the change that begins them, and of one that is driven.
func TestAFailedRunIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		code := map[string]nodeFunc{"quick": updateNode(`{}`), "broken": crashNodes(&effectLedger{})["broken"]}
		endless := withExpressions(chainSpec("endless", channelsLog, "quick"), "quick")
		endless.Edges = append(endless.Edges[:1], newEdge("quick", "quick"))
		endless.StepLimit = 3
		w := newFixtureOn(t, memory.New(memory.Options{}), engine.Options{Logger: zap.New(core)}, code,
			endless, chainSpec("g", channelsLog, "broken"))
		for thread, name := range map[string]string{"t1": "endless", "t2": "g"} {
			run := w.runToStop(thread, name, `{}`)
			require.Equal(t, checkpoint.RunFailed, run.State)
			synctest.Wait()
			lines := logs.FilterMessage("run failed").FilterField(zap.String("thread", thread)).All()
			require.Len(t, lines, 1, name)
			require.Equal(t, run.ID, lines[0].ContextMap()["run"])
			require.Equal(t, run.Failure.Reason, lines[0].ContextMap()["reason"])
		}
	})
}

// TestWhyADueThreadIsNotTakenUpIsLogged has a store that takes no changes; a client
// does not see the file in the cause, and the operator does.
func TestWhyADueThreadIsNotTakenUpIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		store := &refusingStore{countingStore: countingStore{Store: memory.New(memory.Options{})}}
		w := newFixtureOn(t, store, engine.Options{Logger: zap.New(core)}, nil)
		_, err := w.engine.CreateThread(t.Context(), runtime.CreateThreadRequest{Thread: "t", Expiration: runtime.Expiration{TTL: time.Minute}})
		require.NoError(t, err)
		away := checkpoint.ErrUnavailable
		store.refusal.Store(&away)
		sleepVirtual(2 * time.Minute)
		lines := logs.FilterMessage("due thread not taken up").All()
		require.NotEmpty(t, lines)
		for _, line := range lines {
			require.Contains(t, line.ContextMap()["cause"], "at /secret/path")
		}
	})
}
