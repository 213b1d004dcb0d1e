package workers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/worker"
)

// Workers die, go silent and come back while runs ask interrupts. Every run
// ends, each memo has one value, and each answer is used once.
func TestRunsSurviveTheirWorkers(t *testing.T) {
	const runs, seed = 60, 7
	s := startServer(t, config{hub: worker.Options{HeartbeatInterval: 20 * time.Millisecond, LeaseTTL: 100 * time.Millisecond, MaxLosses: 1000}})
	random := rand.New(rand.NewPCG(seed, seed))
	var mu sync.Mutex
	recorded := make(map[string][]string) // by task: the values that were used
	work := map[string]taskFunc{
		"a": func(ctx context.Context, k *runningTask) *graphdv1.TaskResult {
			mu.Lock()
			value := fmt.Sprint(random.IntN(1 << 30))
			mu.Unlock()
			charge := k.recordOnce(ctx, "charge", func() string { return value })
			mu.Lock()
			recorded[k.GetTaskId()] = append(recorded[k.GetTaskId()], charge)
			mu.Unlock()
			return completedResult(`{"log":["` + charge + `",` + k.answerOrUnwind(`"a?"`) + `]}`)
		},
		"b": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
			return completedResult(`{"log":[` + k.answerOrUnwind(`"b?"`) + `]}`)
		},
	}
	s.putGraph(newChainGraph("g", "a", "b"))
	stop := make(chan struct{})
	var killers sync.WaitGroup
	for i := range 3 {
		killers.Go(func() {
			for n := 0; ; n++ {
				w := s.startWorker(fmt.Sprintf("w%d-%d", i, n), 4, listSpecs(newChainGraph("g", "a", "b")), work)
				mu.Lock()
				life := time.Duration(5+random.IntN(60)) * time.Millisecond
				mu.Unlock()
				timer := time.NewTimer(life)
				select {
				case <-timer.C:
					w.cancel()
				case <-stop:
					timer.Stop()
					return
				}
			}
		})
	}
	ended := make([]*graphdv1.Run, runs)
	var clients sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range runs {
		clients.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			run := s.runGraph("g", `{"x":0}`)
			for _, answer := range []string{"first", "second"} {
				if run.GetState() == graphdv1.RunState_RUN_STATE_INTERRUPTED {
					run = s.answerRun(run, fmt.Sprintf("%q", answer))
				}
			}
			ended[i] = run
		})
	}
	clients.Wait()
	close(stop)
	killers.Wait()
	for _, run := range ended {
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), run.GetFailure())
		require.Regexp(t, `"log":\["\d+","first","second"\]`, run.GetOutput().GetJson())
	}
	require.Len(t, recorded, runs)
	for _, values := range recorded {
		for _, v := range values {
			require.Equal(t, values[0], v, "a memo has one value")
		}
	}
}
