package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// racingServers are two servers on one Redis, in real time, with threads that ask the same
// question. Each answer that a node is given is counted.
type racingServers struct {
	*cluster

	servers [2]*engine.Engine

	mu      sync.Mutex
	answers map[string][]string // by thread
}

func newRacingServers(t *testing.T, ask pregel.Ask) *racingServers {
	t.Helper()
	server := redistest.Start(t, "--appendfsync", "no")
	open := func() *redis.Store {
		s, err := redis.Open(t.Context(), redis.Options{URL: server.URL("")})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	first, second := open(), open() // closed after their users
	r := &racingServers{cluster: newCluster(t, first, 0, faultRefused), answers: map[string][]string{}}
	t.Cleanup(r.closeAll)
	r.opts.KnowsCallers = true
	r.opts.PollInterval, r.opts.ScanInterval = 20*time.Millisecond, 10*time.Millisecond
	r.nodes.funcs = map[string]nodeFunc{"ask": func(_ context.Context, n *nodeCall) pregel.Result {
		q := ask
		q.SetDriftDefaults(n.Graph.Spec)
		for _, a := range n.Journal.Answers {
			if a.Matches(&q) {
				r.noteAnswer(n.Thread, string(a.Value))
				return logUpdate(string(a.Value))
			}
		}
		return pregel.Result{Asks: []pregel.Ask{q}}
	}}
	r.compileGraphs(chainSpec("g", channelsLog, "ask"))
	r.servers = [2]*engine.Engine{r.startEngine(first), r.startEngine(second)}
	return r
}

func (r *racingServers) noteAnswer(thread, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[thread] = append(r.answers[thread], value)
}

// raceThreads has threads race, some at a time.
func (r *racingServers) raceThreads(threads int, race func(number int, q checkpoint.Interrupt)) {
	r.t.Helper()
	const lanes = 8
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			for n := lane; n < threads; n += lanes {
				race(n, r.askOn(r.servers[n%2], fmt.Sprint("t", n)))
			}
		})
	}
	all.Wait()
}

// askOn runs a thread to its question.
func (r *racingServers) askOn(e *engine.Engine, thread string) checkpoint.Interrupt {
	r.t.Helper()
	started, err := e.Start(r.t.Context(), runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: "g", Request: newInput("x"), By: actor("eva"),
	})
	require.NoError(r.t, err)
	_, err = e.WaitRun(r.t.Context(), thread, started.Run.ID)
	require.NoError(r.t, err)
	return r.readOnly(thread)
}

// readOnly reads the only question of a thread.
func (r *racingServers) readOnly(thread string) checkpoint.Interrupt {
	r.t.Helper()
	list, err := r.engine.Interrupts(r.t.Context(), nil, checkpoint.InterruptQuery{Thread: thread})
	require.NoError(r.t, err)
	require.Len(r.t, list, 1)
	return list[0]
}

func (r *racingServers) answerOn(e *engine.Engine, who string, q checkpoint.Interrupt) error {
	_, err := e.Resume(r.t.Context(), runtime.ResumeRequest{
		Thread: q.Thread, By: actor(who), Responses: []runtime.Response{{Interrupt: q.ID, Value: `"answer"`}},
	})
	return err
}

// requireOutcome waits for the state of a question, and checks its trail and what its node got.
func (r *racingServers) requireOutcome(q checkpoint.Interrupt, state checkpoint.InterruptState, answers, trail []string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.readOnly(q.Thread).State == state }, time.Minute, 5*time.Millisecond, "thread %s is not %s", q.Thread, state)
	entries, err := r.engine.ListTrail(r.t.Context(), runtime.Question{Thread: q.Thread, Interrupt: q.ID})
	require.NoError(r.t, err)
	require.Equal(r.t, trail, describeTrail(entries))
	if len(answers) > 0 {
		require.Eventually(r.t, func() bool { return r.readRun(q.Thread, "").State == checkpoint.RunSucceeded }, time.Minute, 5*time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Equal(r.t, answers, r.answers[q.Thread])
}

// spread is a moment around another one, as far from it as the number of a thread says.
func spread(at time.Time, number int) time.Duration {
	return time.Until(at) + time.Duration(number%41-20)*time.Millisecond
}

// The two votes that are missing come at the same instant, to two servers: one decides.
func TestLastVotesAtOnceOnRedis(t *testing.T) {
	r := newRacingServers(t, pregel.Ask{Value: `"pay?"`, Policy: &approval.Policy{Approvals: 3}})
	r.raceThreads(300, func(_ int, q checkpoint.Interrupt) {
		require.NoError(t, r.answerOn(r.servers[0], "dora", q))
		var votes sync.WaitGroup
		for i, who := range []string{"ana", "ben"} {
			votes.Go(func() { require.NoError(t, r.answerOn(r.servers[i], who, q)) })
		}
		votes.Wait()
		last := r.readOnly(q.Thread)
		require.Len(t, last.Votes, 3)
		first := map[string]string{"ana": "ben", "ben": "ana"}[last.Responder]
		r.requireOutcome(q, checkpoint.InterruptConsumed, []string{`"answer"`}, []string{
			"asked", `voted dora "answer"`, `voted ` + first + ` "answer"`, `voted ` + last.Responder + ` "answer"`,
			`answered ` + last.Responder + ` "answer"`, "used",
		})
	})
}

// An answer and the default meet: one of them is used, and the caller is told which.
func TestAnAnswerAtTheMomentOfTheExpiryOnRedis(t *testing.T) {
	r := newRacingServers(t, pregel.Ask{Value: `"pay?"`, TTL: 150 * time.Millisecond, Expiry: checkpoint.ExpiryResumeDefault, Default: `"default"`, Policy: &approval.Policy{}})
	r.raceThreads(300, func(number int, q checkpoint.Interrupt) {
		require.NoError(t, backoff.Sleep(t.Context(), spread(q.Expires, number)))
		switch err := r.answerOn(r.servers[number/2%2], "ben", q); errorReason(err) {
		case "":
			r.requireOutcome(q, checkpoint.InterruptConsumed, []string{`"answer"`}, []string{"asked", `voted ben "answer"`, `answered ben "answer"`, "used"})
		case runtime.ReasonInterruptExpired:
			r.requireOutcome(q, checkpoint.InterruptExpired, []string{`"default"`}, []string{"asked", `expired "default"`})
		default:
			require.NoError(t, err)
		}
	})
}

// A retraction and the effect of an answer meet: the question is open again, or its node has run.
func TestAnAnswerIsTakenBackAtTheMomentOfItsEffectOnRedis(t *testing.T) {
	undo := 150 * time.Millisecond
	r := newRacingServers(t, pregel.Ask{Value: `"pay?"`, Undo: &undo})
	r.raceThreads(300, func(number int, q checkpoint.Interrupt) {
		require.NoError(t, r.answerOn(r.servers[0], "ana", q))
		require.NoError(t, backoff.Sleep(t.Context(), spread(r.readOnly(q.Thread).Effective, number)))
		_, err := r.servers[number/2%2].RetractResponse(t.Context(), runtime.RetractRequest{
			Question: runtime.Question{Thread: q.Thread, Interrupt: q.ID}, By: actor("ana"),
		})
		switch errorReason(err) {
		case "":
			r.requireOutcome(q, checkpoint.InterruptOpen, nil, []string{"asked", `answered ana "answer"`, "retracted ana"})
		case runtime.ReasonResponseInEffect:
			r.requireOutcome(q, checkpoint.InterruptConsumed, []string{`"answer"`}, []string{"asked", `answered ana "answer"`, "used"})
		default:
			require.NoError(t, err)
		}
	})
}
