package runtime_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

var (
	togetherSeeds = flag.Int("together-seeds", 60, "random graphs that are run with and without shared commits")
	togetherFrom  = flag.Uint64("together-from", 1, "the first seed")
	togetherDisk  = flag.Bool("together-disk", false, "keep them in SQLite")
)

// TestSharedCommitsShowNothing plays random clients on random graphs, once with
// a commit for each superstep and once with shared ones: answers, events in their
// order, states, history, records and the inbox are the same.
func TestSharedCommitsShowNothing(t *testing.T) {
	open := onMemory
	if *togetherDisk {
		open = onSQLite
	}
	for n := range uint64(*togetherSeeds) {
		seed := *togetherFrom + n
		synctest.Test(t, func(t *testing.T) {
			d := &duel{dice: dice{rand.New(rand.NewPCG(seed, 0))}}
			for i, together := range []int{1, 64} {
				store := open(t)
				d.sides[i] = newStage(t, store)
				d.sides[i].engine.Close()
				d.sides[i].together = together
				d.sides[i].start()
				t.Cleanup(func() {
					d.sides[i].engine.Close()
					require.NoError(t, store.Close())
				})
			}
			defer func() {
				if t.Failed() {
					t.Logf("seed %d, side by side %v:\n%s", seed, d.fan, d.told.String())
				}
			}()
			d.play(t)
		})
	}
}

// duel is the same world twice.
type duel struct {
	dice

	sides [2]*stage
	told  strings.Builder
	nodes []string
	fan   bool // nodes may run side by side
}

type dice struct{ *rand.Rand }

func (d dice) in(percent int) bool { return d.IntN(100) < percent }

func (d dice) of(words ...string) string { return words[d.IntN(len(words))] }

// do performs a command in both worlds and returns the answer.
func (d *duel) do(t *testing.T, command string, body ...string) string {
	t.Helper()
	fmt.Fprintf(&d.told, "> %s\n%s\n", command, strings.Join(body, "\n"))
	var answers [2]string
	d.sides[0].do(block{command: "sleep 1s"}) // what is listed by its time has one of its own
	for i, s := range d.sides {
		synctest.Wait()
		answers[i] = s.do(block{command: command, body: body})
	}
	d.told.WriteString(answers[0])
	require.Equal(t, answers[0], answers[1], command)
	return answers[0]
}

func (d *duel) play(t *testing.T) {
	t.Helper()
	if strings.Contains(d.make(t), "error") {
		return
	}
	d.do(t, "start t g "+d.input()+d.of("", "", "", " steps=3", " before="+d.of(d.nodes...), " after="+d.of(d.nodes...)))
	for range d.IntN(8) {
		d.act(t)
		d.do(t, "state t sub")
	}
	for _, look := range []string{"history t", "raw t", "run t", "state t sub"} {
		d.do(t, look)
	}
	require.Equal(t, strings.Join(d.records(t, 0), "\n"), strings.Join(d.records(t, 1), "\n"))
}

func (d *duel) input() string {
	return "input=" + d.of(`{"n":1}`, `{"a":["in"]}`, `{"x":"in","n":-2}`, `{"u":7}`)
}

// act is something that a client may do.
func (d *duel) act(t *testing.T) {
	t.Helper()
	open, err := d.sides[0].engine.Interrupts(t.Context(), checkpoint.InterruptQuery{
		Thread: "t", States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	require.NoError(t, err)
	var names []string
	for _, q := range open {
		if q.Reason != checkpoint.ReasonBreakpoint {
			names = append(names, d.sides[0].name("i", q.ID))
		}
	}
	slices.Sort(names)
	switch k := d.IntN(100); {
	case len(open) > 0 && k < 75:
		d.answer(t, names)
	case k < 45:
		d.do(t, "start t "+d.input()+d.of("", " open=discard", " open=discard steps=4", ` open=discard update={"a":["up"]}`))
	case k < 60:
		d.do(t, "start t open=discard from=c"+fmt.Sprint(1+d.IntN(6)))
	case k < 70 && d.fan:
		d.do(t, "start t open=discard goto="+d.of(d.nodes...)+d.of("", ` update={"n":3}`))
	case k < 85:
		d.do(t, `update t values={"a":["hand"]}`+d.of("", " as="+d.of(d.nodes...), " at=c3", " supersede"))
	case k < 93:
		d.do(t, "cancel t"+d.of("", " rollback"))
	default:
		d.do(t, "restart")
	}
}

// answer resumes, with answers to some of the questions.
func (d *duel) answer(t *testing.T, names []string) {
	t.Helper()
	command := "resume t" + d.of("", "", "", " all", " collect")
	for _, n := range names {
		switch k := d.IntN(10); {
		case k < 6:
			command += " " + n + "=" + d.of(`"yes"`, `null`, `9007199254740993`, `{"k":[1]}`)
		case k < 7 && !d.fan:
			command += " dismiss=" + n
		}
	}
	if d.in(10) {
		command += ` update={"a":["also"]}`
	}
	if d.fan && d.in(5) {
		command += " goto=" + d.of(d.nodes...)
	}
	d.do(t, command)
}

// make makes a graph, and perhaps one inside of it.
func (d *duel) make(t *testing.T) string {
	t.Helper()
	sub := d.in(40)
	d.fan = false
	if sub {
		d.do(t, "graph child"+d.options([]string{"e7", "e8", "q7"}), d.body([]string{"e7", d.of("q7", "f7"), "e8"}, false, false)...)
	}
	d.nodes, d.fan = nil, !sub && d.in(50)
	for i := range 2 + d.IntN(5) {
		d.nodes = append(d.nodes, d.of("e", "e", "e", "q", "f")+fmt.Sprint(i))
	}
	if sub {
		d.nodes[d.IntN(len(d.nodes))] = "s9"
	}
	return d.do(t, "graph g"+d.options(d.nodes), d.body(d.nodes, d.fan, true)...)
}

func (d *duel) options(nodes []string) string {
	return d.of("", "", "", " before="+d.of(nodes...), " after="+d.of(nodes...)) + " steps=" + fmt.Sprint(3+d.IntN(20)) +
		d.of("", "", "", " strict", " output=a,n", " step-timeout=1s")
}

// body is a graph of nodes, each of which leads to the next one at least. Only
// where it may fan out do several of them run side by side.
func (d *duel) body(nodes []string, fan, root bool) []string {
	lines := []string{"channels a:append n:add=0 x u:untracked"}
	if d.in(60) {
		lines[0] = "channels a:append n:add=0 x u"
	}
	lines = append(lines, "START -> "+nodes[0])
	handled := false
	for i, n := range nodes {
		next := "END"
		if i+1 < len(nodes) {
			next = nodes[i+1]
		}
		if n == "s9" {
			lines = append(lines, "s9 = child"+d.of("", " persist", " disabled")+d.of("", " retry=2/10ms"))
		} else {
			head := n + d.of("", "", " retry=2/10ms", " retry=3/10ms")
			if d.in(10) {
				head, handled = head+" handler=e99", true
			}
			if fan && d.in(10) {
				head += " defer"
			}
			lines = append(lines, head+": "+d.code(n, nodes, root))
		}
		lines = append(lines, d.out(n, next, nodes, fan))
	}
	if handled {
		lines = append(lines, `e99: set a=[$failed]`, "e99 -> END")
	}
	return lines
}

// out leads on from a node.
func (d *duel) out(n, next string, nodes []string, fan bool) string {
	other := d.of(nodes...)
	switch k := d.IntN(10); {
	case k < 2:
		return fmt.Sprintf("%s ? state.n > %d -> %s ; -> %s", n, d.IntN(6), next, other)
	case k < 3:
		return fmt.Sprintf("%s ?? size(state.a) > 3 ? '%s' : '%s'", n, end(next), other)
	case k < 5 && fan:
		return fmt.Sprintf("%s -> [%s,%s]", n, next, other)
	default:
		return n + " -> " + next
	}
}

// code is what a node does: the same for the same task and attempt, or it might
// not be computed twice.
func (d *duel) code(n string, nodes []string, root bool) string {
	does := []string{`set a=["` + n + `"] n=1`}
	switch {
	case n[0] == 'q' || d.in(12):
		does = []string{
			`ask "` + n + ` $in" | set a=[$1]`,
			`ask "` + n + `1 $in" | ask "` + n + `2 $in" | set a=[$1,$2] n=1`,
			`ask key="k" "` + n + ` $state.n $in" | set x=$1`,
		}
	case d.in(35):
		other := d.of(nodes...)
		does = []string{
			`set x="` + n + `"`, `write a=["w"]`, `overwrite a=["o"]`, `set u=` + fmt.Sprint(d.IntN(9)), `set a=[$keys] n=1`, `set a=[$in]`,
		}
		if !d.fan { // a failure cuts off what runs beside it, or comes too late for that
			does = append(does, `fail Boom`, `fail! Boom`, `when 1 $n fail Boom | set a=["`+n+`"]`, `when 2 $state.n fail Boom | set n=1`, `return 5`,
				`set nothing=1 n=1`, `set n="no number"`)
		}
		if d.fan {
			does = append(does, `set n=1 | when 2 $state.n goto `+other, `when null $in send `+other+` {"i":1}`, `when null $in send `+other+` {"i":1} | when null $in send `+other+` {"i":2}`)
		}
		if !root {
			does = append(does, `set n=1 | parent`)
		}
		if n[0] == 'f' && !d.fan {
			does = append(does, `emit c {"v":$state.n} | set n=1`, `sleep 10ms | set n=1`, `memo m | set a=[$m]`, `sleep 2s`)
		}
	}
	return d.of(does...)
}

// records are what the store keeps, without what is random.
func (d *duel) records(t *testing.T, side int) []string {
	t.Helper()
	s := d.sides[side]
	events, err := s.store.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	var out, group []string
	place := ""
	flush := func() {
		if d.fan { // side by side: in the order in which they ended
			slices.Sort(group)
		}
		out, group = append(out, group...), nil
	}
	for _, e := range events {
		here := fmt.Sprint(e.Namespace, e.Step, e.Kind == checkpoint.EventCheckpoint, e.Kind == checkpoint.EventValues, e.Phase == checkpoint.PhaseScheduled)
		if here != place {
			flush()
		}
		place = here
		text := fmt.Sprint(pregel.NodePath(e.Namespace), " ", e.Step, " ", e.Kind, e.Node, " ", e.Phase, e.Attempt, e.Source, namesOf(e.Next), e.Triggers,
			"\n\t", e.Value, e.Cached, e.State, " ", failure(e.Failure), " at ", where(e.Checkpoint), " from ", spot(e.Parent))
		var asked []string
		for _, q := range e.Interrupts {
			asked = append(asked, fmt.Sprint(" ", q.Value, q.Message, q.State, q.Response, q.Index, q.Key))
		}
		slices.Sort(asked)
		group = append(group, text+strings.Join(asked, ""))
	}
	flush()
	questions, err := s.store.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "t"})
	require.NoError(t, err)
	for _, q := range questions {
		group = append(group, fmt.Sprint(pregel.NodePath(q.Namespace), q.Node, q.Value, q.Message, q.State, q.Response, q.Dismissed))
	}
	slices.Sort(group)
	flush()
	runs, err := s.store.Runs(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	for _, r := range runs {
		out = append(out, fmt.Sprint(r.State, failure(r.Failure), r.FirstEvent, " ", r.LastEvent, " ", r.Order, " ", r.Stop, r.Output, " ", spot(r.Base)))
	}
	head, err := s.store.Head(t.Context(), "t")
	require.NoError(t, err)
	return append(out, fmt.Sprint(head.State, head.Open, head.Answered, head.Hold, head.Queue, head.Seq, head.LastEvent, head.FirstEvent,
		spot(head.Checkpoint), head.Owner, head.Due.IsZero(), head.Branched, head.Cancel))
}

func namesOf(next []checkpoint.NextTask) string {
	var names []string
	for _, n := range next {
		names = append(names, n.Node)
	}
	return strings.Join(names, ",")
}

// where is the number of a checkpoint; what is not kept has none.
func where(id string) string {
	if s := spot(id); s != id {
		return s
	}
	return "-"
}

// nature makes the nodes of a graph what the first letter of their names says.
func nature(s *graph.Spec) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch {
		case n.Function == nil:
		case n.Name[0] == 'e':
			n.Function, n.Expr = nil, &graph.ExprSpec{Goto: "null"}
		case n.Name[0] == 'q':
			n.Function, n.Ask = nil, &graph.AskSpec{Value: "'?'", Goto: "null"}
		}
	}
}
