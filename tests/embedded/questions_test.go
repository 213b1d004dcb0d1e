package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
)

// The newest checkpoint of a thread that asks has what was written before, and the question is
// with it.
func TestAQuestionIsInTheCheckpoint(t *testing.T) {
	g := graph.New("g").Channel("a").Channel("b").
		Node("write", say("a", 1)).
		Node("ask", askInto("b", "go on?", graph.Reason("approval"))).
		Chain(graph.Start, "write", "ask", graph.End)
	p := open(t, graphd.Memory(), g)
	o := p.run("g", "t", `{}`)
	require.True(t, o.Waits())
	state, err := p.Threads().GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: "t"})
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, state.GetValues().GetJson())
	require.Len(t, state.GetInterrupts(), 1)
	q := state.GetInterrupts()[0]
	require.Equal(t, "ask", q.GetNode())
	require.Equal(t, "approval", q.GetReason())
	require.Equal(t, `"go on?"`, q.GetValue().GetJson())
	require.Equal(t, []string{q.GetInterruptId()}, o.Run.GetOpenInterruptIds())
}

type person struct {
	Name string `json:"name"`
	Age  int    `json:"age"`
}

// Two questions of a node need two answers. Code before them runs once in each pass, and a struct
// without pointers is a state as others are.
func TestTwoQuestionsNeedTwoAnswers(t *testing.T) {
	var calls counter
	g := graph.New("g").State(person{}).Node("ask", graph.Typed(func(ctx context.Context, p person) (any, error) {
		calls.add("begin")
		name, err := graph.Ask[string](ctx, "name?")
		if err != nil {
			return nil, err
		}
		p.Name = name
		p.Age, err = graph.Ask[int](ctx, "age?")
		return p, err
	})).Chain(graph.Start, "ask", graph.End)
	p := open(t, graphd.Memory(), g)
	require.Equal(t, []string{`"name?"`}, values(p.run("g", "t", `{}`)))
	require.Equal(t, []string{`"age?"`}, values(p.answer("t", client.Answer{Value: "Ana"})))
	requireOutput(t, p.answer("t", client.Answer{Value: 40}), `{"name":"Ana","age":40}`)
	require.Equal(t, 3, calls.of("begin"))
}

// An answer is for one question: the next node asks again, and so does a loop, each time anew.
func TestAnAnswerIsUsedOnce(t *testing.T) {
	g := graph.New("g").Channel("a").Channel("b").
		Node("first", askInto("a", "first?")).
		Node("second", askInto("b", "delete the production database?")).
		Chain(graph.Start, "first", "second", graph.End)
	loop := graph.New("loop").Channel("said", graph.Reducer("append")).Channel("n").
		Node("ask", func(ctx context.Context, s graph.State) (any, error) {
			var said []string
			if err := s.Decode("said", &said); err != nil {
				return nil, err
			}
			answer, err := graph.Ask[string](ctx, fmt.Sprintf("%d?", len(said)))
			return map[string]any{"said": []string{answer}, "n": len(said) + 1}, err
		}).
		Edge(graph.Start, "ask").
		Route("ask", func(_ context.Context, s graph.State) (any, error) {
			var n int
			err := s.Decode("n", &n)
			if n < 3 {
				return "ask", err
			}
			return graph.End, err
		}, "ask", graph.End)
	p := open(t, graphd.Memory(), g, loop)
	p.run("g", "t", `{}`)
	require.Equal(t, []string{`"delete the production database?"`}, values(p.answer("t", client.Answer{Value: "yes"})))
	requireOutput(t, p.answer("t", client.Answer{Value: "no"}), `{"a":"yes","b":"no"}`)

	require.Equal(t, []string{`"0?"`}, values(p.run("loop", "l", `{}`)))
	require.Equal(t, []string{`"1?"`}, values(p.answer("l", client.Answer{Value: "a"})))
	require.Equal(t, []string{`"2?"`}, values(p.answer("l", client.Answer{Value: "b"})))
	requireOutput(t, p.answer("l", client.Answer{Value: "c"}), `{"said":["a","b","c"],"n":3}`)
}

// newParallel is a graph of three nodes that ask, one that does not, and a join.
func newParallel(calls *counter) *graph.Builder {
	count := func(node string, f graph.Func) graph.Func {
		return func(ctx context.Context, s graph.State) (any, error) {
			update, err := f(ctx, s)
			if err == nil {
				calls.add(node)
			}
			return update, err
		}
	}
	g := graph.New("parallel").Channel("said", graph.Reducer("append")).Channel("joined")
	for _, name := range []string{"a", "b", "c"} {
		g.Node(name, count(name, func(ctx context.Context, _ graph.State) (any, error) {
			answer, err := graph.Ask[string](ctx, name)
			return map[string]any{"said": []string{name + answer}}, err
		})).Edge(graph.Start, name)
	}
	return g.Node("quiet", count("quiet", say("said", []string{"quiet"}))).Edge(graph.Start, "quiet").
		Node("join", count("join", say("joined", true))).Join([]string{"a", "b", "c", "quiet"}, "join").Edge("join", graph.End)
}

// Questions of parallel nodes are answered in any order, one by one or together. Nodes that have
// ended are not run again, and the join runs once, after the last answer.
func TestParallelQuestions(t *testing.T) {
	for _, order := range [][][]string{{{"a"}, {"b"}, {"c"}}, {{"c"}, {"b", "a"}}, {{"a", "c"}, {"b"}}, {{"b", "c", "a"}}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			var calls counter
			store := file(t)
			p := open(t, store, newParallel(&calls))
			o := p.run("parallel", "t", `{}`)
			require.ElementsMatch(t, []string{`"a"`, `"b"`, `"c"`}, values(o))
			first := o
			for _, some := range order {
				var answers []client.Answer
				for _, name := range some {
					answers = append(answers, client.Answer{Question: question(t, first, `"`+name+`"`), Value: "!"})
				}
				o = p.answer("t", answers...)
				p.close()
				p = open(t, store, newParallel(&calls)) // the join stays where it is
			}
			requireOutput(t, o, `{"said":["a!","b!","c!","quiet"],"joined":true}`)
			for _, name := range []string{"a", "b", "c", "quiet", "join"} {
				require.Equal(t, 1, calls.of(name), name)
			}
		})
	}
}

// Questions of graphs in graphs are answered where they are asked. Inner nodes that have ended are
// not run again, and answers of siblings stay.
func TestNestedQuestions(t *testing.T) {
	var calls counter
	inner := graph.New("inner").Channel("x").Channel("deep").
		Node("before", func(context.Context, graph.State) (any, error) {
			calls.add("inner")
			return map[string]any{"x": 1}, nil
		}).
		Node("ask", askInto("deep", "deep?")).
		Chain(graph.Start, "before", "ask", graph.End)
	middle := graph.New("middle").Channel("deep").Channel("side").
		Node("before", func(context.Context, graph.State) (any, error) {
			calls.add("middle")
			return nil, nil
		}).
		Subgraph("inner", inner).
		Node("side", askInto("side", "side?")).
		Edge(graph.Start, "before").Edge("before", "inner").Edge("before", "side")
	outer := graph.New("outer").Channel("deep").Channel("side").
		Subgraph("middle", middle).Chain(graph.Start, "middle", graph.End)
	p := open(t, graphd.Memory(), outer)
	o := p.run("outer", "t", `{}`)
	require.ElementsMatch(t, []string{`"deep?"`, `"side?"`}, values(o))
	o2 := p.answer("t", client.Answer{Question: question(t, o, `"side?"`), Value: "s"})
	require.Equal(t, []string{`"deep?"`}, values(o2))
	requireOutput(t, p.answer("t", client.Answer{Value: "d"}), `{"deep":"d","side":"s"}`)
	require.Equal(t, 1, calls.of("inner"))
	require.Equal(t, 1, calls.of("middle"))
}

// The same answer again changes nothing, another one is refused, and so is one to a question that
// is not there.
func TestRepeatedAndUnknownAnswers(t *testing.T) {
	var calls counter
	g := graph.New("g").Channel("a").Node("ask", func(ctx context.Context, _ graph.State) (any, error) {
		answer, err := graph.Ask[string](ctx, "pay?")
		if err == nil {
			calls.add("paid")
		}
		return map[string]any{"a": answer}, err
	}).Chain(graph.Start, "ask", graph.End)
	p := open(t, graphd.Memory(), g)
	o := p.run("g", "t", `{}`)
	yes := client.Answer{Question: o.Questions[0].GetInterruptId(), Value: "yes"}
	_, err := p.Resume(t.Context(), "t", client.Answer{Question: "another", Value: "yes"})
	require.ErrorIs(t, err, client.InterruptNotFound)
	_, err = p.Resume(t.Context(), "nowhere", yes)
	require.ErrorIs(t, err, client.ThreadNotFound)
	requireOutput(t, p.answer("t", yes), `{"a":"yes"}`)
	p.answer("t", yes)
	_, err = p.Resume(t.Context(), "t", client.Answer{Question: yes.Question, Value: "no"})
	require.ErrorIs(t, err, client.InterruptAlreadyResolved)
	require.Equal(t, 1, calls.of("paid"))
}

// Of many who answer at once, one wins, and what follows the answer happens once.
func TestConcurrentAnswers(t *testing.T) {
	var calls counter
	g := graph.New("g").Channel("a").Node("ask", func(ctx context.Context, _ graph.State) (any, error) {
		answer, err := graph.Ask[int](ctx, "which?")
		if err == nil {
			calls.add("used")
		}
		return map[string]any{"a": answer}, err
	}).Chain(graph.Start, "ask", graph.End)
	p := open(t, file(t), g)
	o := p.run("g", "t", `{}`)
	outcomes := make([]error, 16)
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() {
			_, outcomes[i] = p.Resume(t.Context(), "t", client.Answer{Question: o.Questions[0].GetInterruptId(), Value: i})
		})
	}
	all.Wait()
	winners := 0
	for _, err := range outcomes {
		if err == nil {
			winners++
			continue
		}
		require.ErrorIs(t, err, client.InterruptAlreadyResolved)
	}
	require.Equal(t, 1, winners)
	require.Equal(t, 1, calls.of("used"))
}

// An answer of another type than the function wants is refused where it is given, and the question
// stays open.
func TestAnswersFitTheType(t *testing.T) {
	g := graph.New("g").Channel("a").Node("ask", func(ctx context.Context, _ graph.State) (any, error) {
		answer, err := graph.Ask[bool](ctx, "delete it?")
		return map[string]any{"a": answer}, err
	}).Chain(graph.Start, "ask", graph.End)
	p := open(t, graphd.Memory(), g)
	p.run("g", "t", `{}`)
	for _, wrong := range []any{"yes", 1, nil, []bool{true}} {
		_, err := p.Resume(t.Context(), "t", client.Answer{Value: wrong})
		require.ErrorIs(t, err, client.ResponseSchemaMismatch, "%v", wrong)
	}
	requireOutput(t, p.answer("t", client.Answer{Value: true}), `{"a":true}`)
}

// An answer that does not fit the schema is refused, the question stays open, and a right answer
// works.
func TestAnswersFitTheSchema(t *testing.T) {
	g := graph.New("g").Channel("a").
		Node("ask", askInto("a", "how many?", graph.Schema(map[string]any{"type": "integer", "minimum": 1}))).
		Chain(graph.Start, "ask", graph.End)
	p := open(t, graphd.Memory(), g)
	p.run("g", "t", `{}`)
	_, err := p.Resume(t.Context(), "t", client.Answer{Value: 0})
	require.ErrorIs(t, err, client.ResponseSchemaMismatch)
	requireOutput(t, p.answer("t", client.Answer{Value: 3}), `{"a":3}`)
}

// Input to a thread that asks is no answer.
func TestInputIsNoAnswer(t *testing.T) {
	g := graph.New("g").Channel("a").Node("ask", askInto("a", "pay?")).Chain(graph.Start, "ask", graph.End)
	p := open(t, graphd.Memory(), g)
	p.run("g", "t", `{}`)
	_, err := p.Invoke(t.Context(), client.Run{Graph: "g", Thread: "t", Input: json.RawMessage(`{"a":"yes"}`)})
	require.ErrorIs(t, err, client.ThreadInterrupted)
	requireOutput(t, p.answer("t", client.Answer{Value: nil}), `{"a":null}`)
	o := p.run("g", "t", `{"a":"again"}`)
	require.Equal(t, []string{`"pay?"`}, values(o), "an ended thread takes new input")
	requireOutput(t, p.answer("t", client.Answer{Value: ""}), `{"a":""}`)
}

// A node that is run again after its answer has the input that it was sent.
func TestARepeatedNodeKeepsItsInput(t *testing.T) {
	g := graph.New("g").Channel("said", graph.Reducer("append")).
		Node("split", func(context.Context, graph.State) (any, error) {
			return graph.Command{Goto: []graph.Target{graph.Send("ask", map[string]any{"n": 1}), graph.Send("ask", map[string]any{"n": 2})}}, nil
		}, graph.Destinations("ask")).
		Node("ask", func(ctx context.Context, s graph.State) (any, error) {
			var n int
			if err := s.Decode("n", &n); err != nil {
				return nil, err
			}
			answer, err := graph.Ask[string](ctx, n)
			return map[string]any{"said": []string{fmt.Sprint(n, " ", answer)}}, err
		}).
		Edge(graph.Start, "split")
	p := open(t, graphd.Memory(), g)
	o := p.run("g", "t", `{}`)
	require.ElementsMatch(t, []string{"1", "2"}, values(o))
	o = p.answer("t", client.Answer{Question: question(t, o, "2"), Value: "b"})
	requireOutput(t, p.answer("t", client.Answer{Question: question(t, o, "1"), Value: "a"}), `{"said":["1 a","2 b"]}`)
}
