package workload_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/bench/limit"
	"github.com/graphd-dev/graphd/bench/wire"
	"github.com/graphd-dev/graphd/bench/workload"
)

func TestW1AcceptsOnlyAWholeChainWithTheRightResult(t *testing.T) {
	right := append(updates(workload.ChainLength), stopped(graphdv1.RunState_RUN_STATE_SUCCEEDED, `{"x":10}`))
	for name, c := range map[string]struct {
		messages []*graphdv1.Event
		want     string
	}{
		"all is there":        {right, ""},
		"an event is missing": {right[1:], "9 updates came of 10"},
		"an event came twice": {append(updates(1), right...), "11 updates came of 10"},
		"the stream broke":    {right[:workload.ChainLength], "broke off"},
		"a wrong result":      {append(updates(10), stopped(graphdv1.RunState_RUN_STATE_SUCCEEDED, `{"x":9}`)), `{\"x\":9}`},
		"a failed run":        {append(updates(10), stopped(graphdv1.RunState_RUN_STATE_FAILED, "")), "FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			target := serve(t, "memory", map[string]limit.Script{workload.Chain: {Messages: encoded(t, c.messages)}})
			_, err := workload.Repeat(t.Context(), 2, 3, 1, workload.W1(target))
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestW2WantsAQuestionAndBothUpdatesAfterTheAnswer(t *testing.T) {
	asked := append(updates(1), &graphdv1.Event{Kind: &graphdv1.Event_Interrupt{Interrupt: &graphdv1.InterruptRaised{}}},
		stopped(graphdv1.RunState_RUN_STATE_INTERRUPTED, ""))
	answered := append(updates(2), stopped(graphdv1.RunState_RUN_STATE_SUCCEEDED, `{"x":2,"answer":"yes"}`))
	for name, c := range map[string]struct {
		question, answer []*graphdv1.Event
		want             string
	}{
		"all is there": {asked, answered, ""},
		"no question":  {append(asked[:1:1], asked[2]), answered, "no question came"},
		"one update":   {asked, answered[1:], "not both updates"},
		"still asking": {asked, append(updates(2), asked[2]), "INTERRUPTED"},
	} {
		t.Run(name, func(t *testing.T) {
			target := serve(t, "memory", map[string]limit.Script{
				workload.Question: {Messages: encoded(t, c.question)}, workload.Answer: {Messages: encoded(t, c.answer)},
			})
			s, err := workload.Repeat(t.Context(), 1, 1, 1, workload.W2(target, &workload.Names{}))
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Positive(t, s.P50)
			require.Positive(t, s.Rate)
		})
	}
}

func TestWatchersAllSeeEverything(t *testing.T) {
	opened := &graphdv1.Event{Kind: &graphdv1.Event_Opened{Opened: &graphdv1.StreamOpened{}}}
	all := append([]*graphdv1.Event{opened}, updates(5)...)
	for name, c := range map[string]struct {
		script limit.Script
		want   string
	}{
		"bytes":               {limit.Script{Messages: encoded(t, all), Gate: true}, ""},
		"encoded for each":    {limit.Script{Messages: encoded(t, all), Gate: true, Encode: true}, ""},
		"an event is missing": {limit.Script{Messages: encoded(t, all[:5]), Gate: true}, "ended after 4 of 5 events"},
	} {
		t.Run(name, func(t *testing.T) {
			target := serve(t, "memory", map[string]limit.Script{workload.Watch: c.script})
			_, err := workload.Watchers(t.Context(), target, &workload.Names{}, 3, 5)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestStepsAreThoseOfTheRun(t *testing.T) {
	messages := append(updates(4), stopped(graphdv1.RunState_RUN_STATE_SUCCEEDED, `{"n":4}`))
	target := serve(t, "memory", map[string]limit.Script{"loop": {Messages: encoded(t, messages)}})
	took, err := workload.Steps(t.Context(), target, "loop", "t", workload.Loop(4, 0), 4)
	require.NoError(t, err)
	require.Len(t, took, 4)
	_, err = workload.Steps(t.Context(), target, "loop", "t", workload.Loop(5, 0), 5)
	require.ErrorContains(t, err, "4 updates came of 5")
}

func TestAroundCountsStepsThatComeTogether(t *testing.T) {
	s := workload.Around([]time.Duration{time.Hour, 3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond, time.Hour}, 1, 4)
	require.InDelta(t, 500, s.Rate, 1e-6)
	require.InDelta(t, 0.002, s.P50, 1e-9)
}

func TestTheLimitCommitsOneByOneAndCountsThem(t *testing.T) {
	for _, store := range []string{"memory", "sqlite:" + t.TempDir() + "/limit.db"} {
		target := serve(t, store, map[string]limit.Script{})
		rate, err := limit.Rate(t.Context(), target.Client, limit.Commits{Lanes: 3, PerThread: 4, Bytes: 100, For: time.Millisecond})
		require.NoError(t, err, store)
		require.Positive(t, rate, store)
	}
}

// serve starts a limit that plays scripts.
func serve(t *testing.T, store string, calls map[string]limit.Script) workload.Target {
	t.Helper()
	config, err := json.Marshal(limit.Config{Store: store, Calls: calls})
	require.NoError(t, err)
	said, out := io.Pipe()
	in, end := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := limit.Serve(context.WithoutCancel(t.Context()), io.MultiReader(strings.NewReader(string(config)+"\n"), in), out)
		_ = out.CloseWithError(fmt.Errorf("the limit ended: %w", err))
		done <- err
	}()
	address, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	client, err := wire.Dial(strings.TrimSpace(address), 2)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		_ = end.Close()
		require.NoError(t, <-done)
	})
	return workload.Target{Client: client, Method: func(call string) string { return limit.Service + call }}
}

func updates(n int) []*graphdv1.Event {
	all := make([]*graphdv1.Event, n)
	for i := range all {
		all[i] = &graphdv1.Event{Step: int32(i), Kind: &graphdv1.Event_Update{Update: &graphdv1.NodeUpdate{}}}
	}
	return all
}

func stopped(state graphdv1.RunState, output string) *graphdv1.Event {
	run := &graphdv1.Run{State: state}
	if output != "" {
		run.Output = &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: output}}
	}
	return &graphdv1.Event{Kind: &graphdv1.Event_End{End: &graphdv1.EndOfStream{
		Cause: graphdv1.EndOfStream_CAUSE_RUN_STOPPED, Run: run,
	}}}
}

func encoded(t *testing.T, events []*graphdv1.Event) [][]byte {
	t.Helper()
	all := make([][]byte, len(events))
	for i, e := range events {
		var err error
		all[i], err = proto.Marshal(e)
		require.NoError(t, err)
	}
	return all
}
