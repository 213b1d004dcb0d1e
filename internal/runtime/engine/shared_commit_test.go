package engine_test

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
	sharedCommitSeeds     = flag.Int("together-seeds", 60, "random graphs that are run with and without shared commits")
	firstSharedCommitSeed = flag.Uint64("together-from", 1, "the first seed")
	sharedCommitOnDisk    = flag.Bool("together-disk", false, "keep them in SQLite")
)

// TestSharedCommitsShowNothing plays random clients on random graphs, once with
// a commit for each superstep and once with shared ones: answers, events in their
// order, states, history, records and the inbox are the same.
func TestSharedCommitsShowNothing(t *testing.T) {
	open := openMemory
	if *sharedCommitOnDisk {
		open = openSQLite
	}
	for n := range uint64(*sharedCommitSeeds) {
		seed := *firstSharedCommitSeed + n
		synctest.Test(t, func(t *testing.T) {
			d := &commitComparison{randomSource: randomSource{rand.New(rand.NewPCG(seed, 0))}}
			for i, together := range []int{1, 64} {
				store := open(t)
				d.runners[i] = newScenarioRunner(t, store)
				d.runners[i].engine.Close()
				d.runners[i].stepsPerCommit = together
				d.runners[i].startEngine()
				t.Cleanup(func() {
					d.runners[i].engine.Close()
					require.NoError(t, store.Close())
				})
			}
			defer func() {
				if t.Failed() {
					t.Logf("seed %d, side by side %v:\n%s", seed, d.runsParallel, d.transcript.String())
				}
			}()
			d.runRandom(t)
		})
	}
}

// commitComparison runs the same commands with separate and with shared commits.
type commitComparison struct {
	randomSource

	runners      [2]*scenarioRunner
	transcript   strings.Builder
	nodes        []string
	runsParallel bool // nodes may run side by side
}

type randomSource struct{ *rand.Rand }

func (s randomSource) chance(percent int) bool { return s.IntN(100) < percent }

func (s randomSource) pick(words ...string) string { return words[s.IntN(len(words))] }

// runCommand performs a command in both fixtures and returns the answer.
func (c *commitComparison) runCommand(t *testing.T, command string, body ...string) string {
	t.Helper()
	fmt.Fprintf(&c.transcript, "> %s\n%s\n", command, strings.Join(body, "\n"))
	var answers [2]string
	c.runners[0].runCommand(commandBlock{command: "sleep 1s"}) // what is listed by its time has one of its own
	for i, s := range c.runners {
		synctest.Wait()
		answers[i] = s.runCommand(commandBlock{command: command, body: body})
	}
	c.transcript.WriteString(answers[0])
	require.Equal(t, answers[0], answers[1], command)
	return answers[0]
}

func (c *commitComparison) runRandom(t *testing.T) {
	t.Helper()
	if strings.Contains(c.makeGraphs(t), "error") {
		return
	}
	c.runCommand(t, "start t g "+c.randomInput()+c.pick("", "", "", " steps=3", " before="+c.pick(c.nodes...), " after="+c.pick(c.nodes...)))
	for range c.IntN(8) {
		c.actRandomly(t)
		c.runCommand(t, "state t sub")
	}
	for _, look := range []string{"history t", "raw t", "run t", "state t sub"} {
		c.runCommand(t, look)
	}
	require.Equal(t, strings.Join(c.readRecords(t, 0), "\n"), strings.Join(c.readRecords(t, 1), "\n"))
}

func (c *commitComparison) randomInput() string {
	return "input=" + c.pick(`{"n":1}`, `{"a":["in"]}`, `{"x":"in","n":-2}`, `{"u":7}`)
}

// actRandomly makes a random call of a client.
func (c *commitComparison) actRandomly(t *testing.T) {
	t.Helper()
	open, err := c.runners[0].engine.Interrupts(t.Context(), nil, checkpoint.InterruptQuery{
		Thread: "t", States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	require.NoError(t, err)
	var names []string
	for _, q := range open {
		if q.Reason != checkpoint.ReasonBreakpoint {
			names = append(names, c.runners[0].nameOf("i", q.ID))
		}
	}
	slices.Sort(names)
	switch k := c.IntN(100); {
	case len(open) > 0 && k < 75:
		c.answerRandomly(t, names)
	case k < 45:
		c.runCommand(t, "start t "+c.randomInput()+c.pick("", " open=discard", " open=discard steps=4", ` open=discard update={"a":["up"]}`))
	case k < 60:
		c.runCommand(t, "start t open=discard from=c"+fmt.Sprint(1+c.IntN(6)))
	case k < 70 && c.runsParallel:
		c.runCommand(t, "start t open=discard goto="+c.pick(c.nodes...)+c.pick("", ` update={"n":3}`))
	case k < 85:
		c.runCommand(t, `update t values={"a":["hand"]}`+c.pick("", " as="+c.pick(c.nodes...), " at=c3", " supersede"))
	case k < 93:
		c.runCommand(t, "cancel t"+c.pick("", " rollback"))
	default:
		c.runCommand(t, "restart")
	}
}

// answerRandomly resumes, with answers to some of the interrupts.
func (c *commitComparison) answerRandomly(t *testing.T, names []string) {
	t.Helper()
	command := "resume t" + c.pick("", "", "", " all", " collect")
	for _, n := range names {
		switch k := c.IntN(10); {
		case k < 6:
			command += " " + n + "=" + c.pick(`"yes"`, `null`, `9007199254740993`, `{"k":[1]}`)
		case k < 7 && !c.runsParallel:
			command += " dismiss=" + n
		}
	}
	if c.chance(10) {
		command += ` update={"a":["also"]}`
	}
	if c.runsParallel && c.chance(5) {
		command += " goto=" + c.pick(c.nodes...)
	}
	c.runCommand(t, command)
}

// makeGraphs makes a graph, and perhaps one inside of it.
func (c *commitComparison) makeGraphs(t *testing.T) string {
	t.Helper()
	sub := c.chance(40)
	c.runsParallel = false
	if sub {
		c.runCommand(t, "graph child"+c.randomOptions([]string{"e7", "e8", "q7"}), c.randomBody([]string{"e7", c.pick("q7", "f7"), "e8"}, false, false)...)
	}
	c.nodes, c.runsParallel = nil, !sub && c.chance(50)
	for i := range 2 + c.IntN(5) {
		c.nodes = append(c.nodes, c.pick("e", "e", "e", "q", "f")+fmt.Sprint(i))
	}
	if sub {
		c.nodes[c.IntN(len(c.nodes))] = "s9"
	}
	return c.runCommand(t, "graph g"+c.randomOptions(c.nodes), c.randomBody(c.nodes, c.runsParallel, true)...)
}

func (c *commitComparison) randomOptions(nodes []string) string {
	return c.pick("", "", "", " before="+c.pick(nodes...), " after="+c.pick(nodes...)) + " steps=" + fmt.Sprint(3+c.IntN(20)) +
		c.pick("", "", "", " strict", " output=a,n", " step-timeout=1s")
}

// randomBody returns a graph of nodes, each of which leads to the next one at least.
// Only where it may fan out do several of them run side by side.
func (c *commitComparison) randomBody(nodes []string, fan, root bool) []string {
	lines := []string{"channels a:append n:add=0 x u:untracked"}
	if c.chance(60) {
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
			lines = append(lines, "s9 = child"+c.pick("", " persist", " disabled")+c.pick("", " retry=2/10ms"))
		} else {
			head := n + c.pick("", "", " retry=2/10ms", " retry=3/10ms")
			if c.chance(10) {
				head, handled = head+" handler=e99", true
			}
			if fan && c.chance(10) {
				head += " defer"
			}
			lines = append(lines, head+": "+c.randomScript(n, nodes, root))
		}
		lines = append(lines, c.randomEdge(n, next, nodes, fan))
	}
	if handled {
		lines = append(lines, `e99: set a=[$failed]`, "e99 -> END")
	}
	return lines
}

// randomEdge leads on from a node.
func (c *commitComparison) randomEdge(n, next string, nodes []string, fan bool) string {
	other := c.pick(nodes...)
	switch k := c.IntN(10); {
	case k < 2:
		return fmt.Sprintf("%s ? state.n > %d -> %s ; -> %s", n, c.IntN(6), next, other)
	case k < 3:
		return fmt.Sprintf("%s ?? size(state.a) > 3 ? '%s' : '%s'", n, fullNodeName(next), other)
	case k < 5 && fan:
		return fmt.Sprintf("%s -> [%s,%s]", n, next, other)
	default:
		return n + " -> " + next
	}
}

// randomScript returns the result of a node: the same for the same task and attempt, or
// it might not be computed twice.
func (c *commitComparison) randomScript(n string, nodes []string, root bool) string {
	does := []string{`set a=["` + n + `"] n=1`}
	switch {
	case n[0] == 'q' || c.chance(12):
		does = []string{
			`ask "` + n + ` $in" | set a=[$1]`,
			`ask "` + n + `1 $in" | ask "` + n + `2 $in" | set a=[$1,$2] n=1`,
			`ask key="k" "` + n + ` $state.n $in" | set x=$1`,
		}
	case c.chance(35):
		other := c.pick(nodes...)
		does = []string{
			`set x="` + n + `"`, `write a=["w"]`, `overwrite a=["o"]`, `set u=` + fmt.Sprint(c.IntN(9)), `set a=[$keys] n=1`, `set a=[$in]`,
		}
		if !c.runsParallel { // a failure cuts off what runs beside it, or comes too late for that
			does = append(does, `fail Boom`, `fail! Boom`, `when 1 $n fail Boom | set a=["`+n+`"]`, `when 2 $state.n fail Boom | set n=1`, `return 5`,
				`set nothing=1 n=1`, `set n="no number"`)
		}
		if c.runsParallel {
			does = append(does, `set n=1 | when 2 $state.n goto `+other, `when null $in send `+other+` {"i":1}`, `when null $in send `+other+` {"i":1} | when null $in send `+other+` {"i":2}`)
		}
		if !root {
			does = append(does, `set n=1 | parent`)
		}
		if n[0] == 'f' && !c.runsParallel {
			does = append(does, `emit c {"v":$state.n} | set n=1`, `sleep 10ms | set n=1`, `memo m | set a=[$m]`, `sleep 2s`)
		}
	}
	return c.pick(does...)
}

// readRecords returns the records of the store, without their random parts.
func (c *commitComparison) readRecords(t *testing.T, side int) []string {
	t.Helper()
	s := c.runners[side]
	events, err := s.store.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	var out, group []string
	place := ""
	flush := func() {
		if c.runsParallel { // side by side: in the order in which they ended
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
		text := fmt.Sprint(pregel.NodePath(e.Namespace), " ", e.Step, " ", e.Kind, e.Node, " ", e.Phase, e.Attempt, e.Source, nextNames(e.Next), e.Triggers,
			"\n\t", e.Value, e.Cached, e.State, " ", failureText(e.Failure), " at ", checkpointNumber(e.Checkpoint), " from ", shortID(e.Parent))
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
		out = append(out, fmt.Sprint(r.State, failureText(r.Failure), r.FirstEvent, " ", r.LastEvent, " ", r.Order, " ", r.MaxStep, r.Output, " ", shortID(r.Base)))
	}
	head, err := s.store.Head(t.Context(), "t")
	require.NoError(t, err)
	return append(out, fmt.Sprint(head.State, head.Open, head.Answered, head.NeedsAllAnswers, head.Queue, head.Seq, head.LastEvent, head.FirstEvent,
		shortID(head.Checkpoint), head.Owner, head.Due.IsZero(), head.Branched, head.Cancel))
}

func nextNames(next []checkpoint.NextTask) string {
	var names []string
	for _, n := range next {
		names = append(names, n.Node)
	}
	return strings.Join(names, ",")
}

// checkpointNumber returns the number of a checkpoint, "-" for a checkpoint that is not
// kept.
func checkpointNumber(id string) string {
	if s := shortID(id); s != id {
		return s
	}
	return "-"
}

// setNodeKinds makes the nodes of a graph what the first letter of their names says.
func setNodeKinds(s *graph.Spec) {
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
