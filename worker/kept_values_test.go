package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/testkit/network"
	"github.com/graphd-dev/graphd/worker"
)

// Values of some bytes come to each node, whether they were sent or kept, and over a new stream.
func TestNodesSeeTheValuesThatTheirWorkerKeeps(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for name, bytes := range map[string]int64{"kept": 0, "kept-one": 7000, "not-kept": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := network.NewProxy(t, s.Address)
			one, two := strings.Repeat("1", 6000), strings.Repeat("2", 6000)
			seen := make(chan string, 100)
			node := func(next string) graph.Func {
				return func(_ context.Context, st graph.State) (any, error) {
					seen <- string(st.Get("a"))[1:2] + string(st.Get("b"))[1:2]
					if next == "cut" {
						p.Cut()
						return nil, nil
					}
					return json.RawMessage(next), nil
				}
			}
			g := graph.New(name).Channel("a").Channel("b")
			names := []string{graph.Start}
			for _, step := range []struct{ name, next string }{
				{"n1", `{}`}, {"n2", `{"b":"` + one + `"}`}, {"n3", `{"a":"` + two + `"}`}, {"n4", "cut"}, {"n5", `{"b":"` + two + `"}`}, {"n6", `{}`},
			} {
				g.Node(step.name, node(step.next))
				names = append(names, step.name)
			}
			serveWith(t, p.Address(), worker.Options{Graphs: []*graph.Builder{g.Chain(append(names, graph.End)...)}, KeptBytes: bytes})
			o := s.invoke(t, name, name, map[string]any{"a": one, "b": two})
			requireOutput(t, `{"a":"`+two+`","b":"`+two+`"}`, o)
			for _, want := range []string{"12", "12", "11", "21", "21", "22"} {
				require.Equal(t, want, receive(t, seen, "a node"))
			}
		})
	}
}

func keptTask(token string, k *graphdv1.KeptValues, channels map[string]string) *graphdv1.ConnectResponse {
	task := newTask(token)
	task.Kept, task.Channels = k, map[string]*graphdv1.Payload{}
	for key, text := range channels {
		task.Channels[key] = &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
	}
	return assign(task)
}

func TestAWorkerDoesAsItIsToldWithValues(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 100)
	s, _ := newScriptedServer(t, nil, worker.Options{KeptBytes: 123, Graphs: []*graph.Builder{oneNode("g", func(_ context.Context, st graph.State) (any, error) {
		seen <- st.Raw()
		return nil, nil
	})}})
	require.EqualValues(t, 123, receive(t, s.hellos, "the hello").GetKeptBytes())
	digest := func(d string) map[string][]byte { return map[string][]byte{"a": []byte(d)} }
	requireMissing := func(token, d string) {
		nack := hear(t, s, func(r *graphdv1.ConnectRequest) (*graphdv1.Nack, bool) { return r.GetNack(), r.GetNack() != nil })
		require.Equal(t, token, string(nack.GetLeaseToken()))
		require.Equal(t, [][]byte{[]byte(d)}, nack.GetMissing())
	}

	s.say <- keptTask("1", &graphdv1.KeptValues{Keep: digest("one")}, map[string]string{"a": `1`, "b": `2`})
	require.JSONEq(t, `{"a":1,"b":2}`, receive(t, seen, "a task"))
	s.say <- keptTask("2", &graphdv1.KeptValues{Use: digest("one")}, map[string]string{"b": `3`})
	require.JSONEq(t, `{"a":1,"b":3}`, receive(t, seen, "a task"))
	s.say <- keptTask("3", &graphdv1.KeptValues{Use: digest("two")}, nil)
	requireMissing("3", "two")

	// What is forgotten is there for the task that says so.
	s.say <- keptTask("4", &graphdv1.KeptValues{Use: digest("one"), Forget: [][]byte{[]byte("one"), []byte("none")}}, nil)
	require.JSONEq(t, `{"a":1}`, receive(t, seen, "a task"))
	s.say <- keptTask("5", &graphdv1.KeptValues{Use: digest("one")}, nil)
	requireMissing("5", "one")

	// A task that is refused brings its values all the same. A channel that is not there is no value.
	other := keptTask("6", &graphdv1.KeptValues{Keep: map[string][]byte{"a": []byte("six"), "c": []byte("nothing")}}, map[string]string{"a": `6`})
	other.GetTask().Node = "unknown"
	s.say <- other
	s.say <- keptTask("7", &graphdv1.KeptValues{Use: digest("six")}, nil)
	require.JSONEq(t, `{"a":6}`, receive(t, seen, "a task"))
	s.say <- keptTask("8", &graphdv1.KeptValues{Use: digest("nothing")}, nil)
	hear(t, s, func(r *graphdv1.ConnectRequest) (bool, bool) { return true, string(r.GetNack().GetLeaseToken()) == "6" })
	requireMissing("8", "nothing")

	s.say <- nil // a new stream
	receive(t, s.hellos, "the second hello")
	s.say <- keptTask("9", &graphdv1.KeptValues{Use: digest("six")}, nil)
	requireMissing("9", "six")
}
