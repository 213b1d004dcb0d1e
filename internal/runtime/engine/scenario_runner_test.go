package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// scenarioRunner is an engine on a store, with names for random ids: i1 is the
// first interrupt that was seen, t1 the first task, c7 the checkpoint numbered 7.
type scenarioRunner struct {
	t        *testing.T
	store    checkpoint.Store
	executor *scriptExecutor
	graphs   graphCatalog
	engine   *engine.Engine

	shownUpTo      map[string]uint64 // last event shown, by thread
	names          map[string]string // of interrupts and tasks
	counts         map[string]int
	backgroundRuns map[string]string // the run that a command left in the background, by thread
	output         strings.Builder
	// usesExpressions makes expressions of all nodes that only compute.
	usesExpressions bool
	// stepsPerCommit is how many supersteps may share a commit; 0 = as many as usual,
	// and only expressive makes expressions.
	stepsPerCommit int
}

func newScenarioRunner(t *testing.T, store checkpoint.Store) *scenarioRunner {
	t.Helper()
	s := &scenarioRunner{
		t: t, store: store, graphs: graphCatalog{},
		executor:  &scriptExecutor{scripts: make(map[string]string), counters: make(map[string]int), ranInline: make(map[string]bool)},
		shownUpTo: make(map[string]uint64), names: make(map[string]string),
		counts: make(map[string]int), backgroundRuns: make(map[string]string),
	}
	s.startEngine()
	return s
}

func (s *scenarioRunner) startEngine() {
	s.engine = engine.New(s.t.Context(), s.store, s.graphs, s.executor, typeSchemas{}, engine.Options{Owner: "o", StepsPerCommit: s.stepsPerCommit})
}

// typeSchemas knows one word of JSON Schema: a value must be of the type.
type typeSchemas struct{}

func (typeSchemas) Check(_ context.Context, schema, value payload.JSON) ([]runtime.Violation, error) {
	want, _ := payload.Lookup(schema, "type")
	if got := payload.KindOf(value).String(); string(want) != strconv.Quote(got) {
		return []runtime.Violation{{Description: "must be " + string(want) + ", not " + got}}, nil
	}
	return nil, nil
}

// commandArgs are the words of a command: positions first, then key=value.
type commandArgs struct {
	positional   []string
	named        map[string]string
	namedInOrder []string // key=value in their order
}

func parseArgs(line string) commandArgs {
	a := commandArgs{named: make(map[string]string)}
	for _, w := range splitWords(line) {
		key, value, ok := strings.Cut(w, "=")
		if !ok || strings.ContainsAny(key, `{["`) {
			a.positional = append(a.positional, w)
			continue
		}
		a.named[key] = value
		a.namedInOrder = append(a.namedInOrder, w)
	}
	return a
}

func (a commandArgs) hasWord(word string) bool { return slices.Contains(a.positional, word) }

// graphName returns the second position, unless it is one of the switches.
func (a commandArgs) graphName() string {
	if len(a.positional) < 2 || slices.Contains([]string{"sub", "bg", "timed", "noran"}, a.positional[1]) {
		return ""
	}
	return a.positional[1]
}

func (a commandArgs) nameList(key string) []string {
	if a.named[key] == "" {
		return nil
	}
	return strings.Split(a.named[key], ",")
}

func (a commandArgs) intValue(key string) int { return parseNumber(a.named[key]) }

func (a commandArgs) jsonValue(key string) payload.JSON { return payload.JSON(a.named[key]) }

func (a commandArgs) sendList() []checkpoint.Send {
	var out []checkpoint.Send
	for _, w := range a.namedInOrder {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "goto":
			out = append(out, checkpoint.Send{Node: fullNodeName(value)})
		case "send":
			node, input, _ := strings.Cut(value, ":")
			out = append(out, checkpoint.Send{Node: node, Input: payload.JSON(input)})
		}
	}
	return out
}

// runCommand performs a command and returns what is to be seen of it.
func (s *scenarioRunner) runCommand(b commandBlock) string {
	s.output.Reset()
	verb, rest, _ := strings.Cut(b.command, " ")
	a := parseArgs(rest)
	verbs := map[string]func(commandArgs, []string) error{
		"graph": s.defineGraph, "start": s.startRun, "resume": s.resumeRun, "state": s.showState, "history": s.showHistory,
		"update": s.updateState, "cancel": s.cancelRun, "wait": s.waitRun, "raw": s.showRaw, "inbox": s.showInterrupts,
		"count": s.setCounters, "sleep": s.sleepFor, "restart": s.restartEngine, "events": s.showEvents, "run": s.showRunState,
	}
	do, ok := verbs[verb]
	require.True(s.t, ok, "line %d: no command %q", b.line, verb)
	if err := do(a, b.body); err != nil {
		s.showError(err)
	}
	return s.output.String()
}

func (s *scenarioRunner) printLine(format string, values ...any) {
	fmt.Fprintf(&s.output, format+"\n", values...)
}

// showError shows an error with all that a client gets of it.
func (s *scenarioRunner) showError(err error) {
	var e *runtime.Error
	if !errors.As(err, &e) {
		if build, ok := errors.AsType[*graph.BuildError](err); ok {
			for _, p := range build.Problems {
				s.printLine("error %s %s", p.Reason, p.Path)
			}
			return
		}
		s.printLine("error ! %v", err)
		return
	}
	text := "error " + e.Reason
	for _, k := range slices.Sorted(maps.Keys(e.Meta)) {
		if k != "threadId" && k != "activeRunId" && k != "runId" {
			text += " " + k + "=" + s.nameIDs(e.Meta[k])
		}
	}
	for _, v := range e.Violations {
		text += " (" + v.Field + ": " + v.Description + ")"
	}
	s.printLine("%s", text)
}

// nameIDs puts names for the ids in a list.
func (s *scenarioRunner) nameIDs(list string) string {
	ids := strings.Split(list, ",")
	for i, id := range ids {
		if n, ok := s.names[id]; ok {
			ids[i] = n
		} else {
			ids[i] = shortID(id)
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, ",")
}

// shortID returns the short form of a checkpoint id, whose front is a number.
func shortID(id string) string {
	front, _, ok := strings.Cut(id, "-")
	n, err := strconv.ParseUint(front, 16, 64)
	if !ok || err != nil || len(front) != 12 {
		return id
	}
	return "c" + strconv.FormatUint(n, 10)
}

// nameOf gives an id the next free name of its kind.
func (s *scenarioRunner) nameOf(kind, id string) string {
	if s.names[id] == "" {
		s.counts[kind]++
		s.names[id] = kind + strconv.Itoa(s.counts[kind])
	}
	return s.names[id]
}

// idOf finds what a name stands for.
func (s *scenarioRunner) idOf(name string) string {
	for id, n := range s.names {
		if n == name {
			return id
		}
	}
	return name
}

// findCheckpoint finds a checkpoint of a namespace by its short form.
func (s *scenarioRunner) findCheckpoint(thread, namespace, short string) string {
	if short == "" {
		return ""
	}
	list, err := s.store.Checkpoints(s.t.Context(), checkpoint.CheckpointQuery{
		Thread: thread, Namespace: namespace, AnyTask: namespace != "",
	})
	require.NoError(s.t, err)
	for _, c := range list {
		if shortID(c.ID) == short {
			return c.ID
		}
	}
	return short
}

func (s *scenarioRunner) defineGraph(a commandArgs, body []string) error {
	spec, code, err := parseGraph(append(slices.Clone(a.positional), a.namedInOrder...), body)
	require.NoError(s.t, err)
	switch {
	case s.usesExpressions:
		useExpressions(spec, code)
	case s.stepsPerCommit > 0:
		setNodeKinds(spec)
	}
	for n, c := range code {
		s.executor.scripts[spec.Name+"/"+n] = c
	}
	g, err := graph.Compile(spec, graph.Env{Expressions: expressions, Lookup: s.graphs.findSubgraph})
	if err != nil {
		return err
	}
	s.graphs[spec.Name] = g
	return nil
}

func (s *scenarioRunner) setCounters(a commandArgs, _ []string) error {
	for _, w := range a.namedInOrder {
		key, value, _ := strings.Cut(w, "=")
		s.executor.addCount(key, parseNumber(value)-s.executor.addCount(key, 0))
	}
	for _, k := range a.positional {
		s.printLine("%s %d", k, s.executor.addCount(k, 0))
	}
	return nil
}

func (s *scenarioRunner) sleepFor(a commandArgs, _ []string) error {
	d, err := time.ParseDuration(a.positional[0])
	require.NoError(s.t, err)
	timer := time.NewTimer(d)
	<-timer.C
	return nil
}

// restartEngine ends the process and starts another one on the same store.
func (s *scenarioRunner) restartEngine(commandArgs, []string) error {
	s.engine.Close()
	s.startEngine()
	return nil
}

// startRun starts a run: start THREAD GRAPH input=… and the other fields of the
// request. sub shows subgraphs too, bg does not wait.
func (s *scenarioRunner) startRun(a commandArgs, _ []string) error {
	req := runtime.StartRequest{
		Thread: a.positional[0], Graph: a.graphName(), Run: a.named["run"],
		Request: checkpoint.RunRequest{
			Input: a.jsonValue("input"), Update: a.jsonValue("update"), Goto: a.sendList(),
			FromNamespace: a.named["in"], From: s.findCheckpoint(a.positional[0], a.named["in"], a.named["from"]),
			InterruptBefore: a.nameList("before"), InterruptAfter: a.nameList("after"),
			StepLimit: a.intValue("steps"), Context: a.jsonValue("context"),
			Expected: s.findCheckpoint(a.positional[0], "", a.named["expected"]),
		},
	}
	req.CreateThread = req.Graph != ""
	if a.named["timeout"] != "" {
		d, err := time.ParseDuration(a.named["timeout"])
		require.NoError(s.t, err)
		req.Request.Timeout = d
	}
	if a.named["user"] != "" {
		req.Metadata = map[string]string{"user": a.named["user"]}
	}
	req.Open = map[string]runtime.OpenPolicy{"discard": runtime.DiscardOpen, "enqueue": runtime.EnqueueOpen}[a.named["open"]]
	req.Concurrency = map[string]runtime.Concurrency{
		"enqueue": runtime.EnqueueBusy, "cancel": runtime.CancelActive, "rollback": runtime.RollbackActive,
	}[a.named["busy"]]
	started, err := s.engine.Start(s.t.Context(), req)
	return s.showRun(a, started, err)
}

// resumeRun answers interrupts: value=… for the one interrupt, i1=… by name, dismiss=i1,
// all, collect, update=…, goto=….
func (s *scenarioRunner) resumeRun(a commandArgs, _ []string) error {
	req := runtime.ResumeRequest{
		Thread: a.positional[0], Update: a.jsonValue("update"), Goto: a.sendList(),
		Expected: s.findCheckpoint(a.positional[0], "", a.named["expected"]),
	}
	switch {
	case a.hasWord("all"):
		req.Coverage = runtime.CoverAll
	case a.hasWord("collect"):
		req.Coverage = runtime.CoverCollect
	}
	for _, w := range a.namedInOrder {
		key, value, _ := strings.Cut(w, "=")
		switch {
		case key == "value":
			req.Single = &runtime.Response{Value: payload.JSON(value)}
		case key == "dismiss":
			req.Responses = append(req.Responses, runtime.Response{Interrupt: s.idOf(value), Dismissed: true, Note: "nobody"})
		case strings.HasPrefix(key, "i") && parseNumber(key[1:]) > 0 || key == "unknown":
			req.Responses = append(req.Responses, runtime.Response{Interrupt: s.idOf(key), Value: payload.JSON(value)})
		}
	}
	started, err := s.engine.Resume(s.t.Context(), req)
	return s.showRun(a, started, err)
}

// showRun waits for the run and shows what has happened since the last look;
// timed says how long it took by the clock of the world.
func (s *scenarioRunner) showRun(a commandArgs, started *runtime.Started, err error) error {
	if err != nil {
		return err
	}
	if a.hasWord("bg") {
		s.backgroundRuns[a.positional[0]] = started.Run.ID
		return nil
	}
	if started.IsAttached {
		s.printLine("attached")
	}
	if a.hasWord("timed") {
		began := time.Now()
		defer func() { s.printLine("took %s", time.Since(began)) }()
	}
	if !a.hasWord("collect") || started.Head.Open == 0 {
		if _, err := s.engine.WaitRun(s.t.Context(), started.Run.Thread, started.Run.ID); err != nil {
			return err
		}
	}
	return s.showEvents(a, nil)
}

func (s *scenarioRunner) waitRun(a commandArgs, _ []string) error {
	_, err := s.engine.WaitRun(s.t.Context(), a.positional[0], orDefault(a.named["run"], s.backgroundRuns[a.positional[0]]))
	require.NoError(s.t, err)
	return s.showEvents(a, nil)
}

func (s *scenarioRunner) cancelRun(a commandArgs, _ []string) error {
	req := runtime.CancelRequest{
		Thread: a.positional[0], Run: a.named["run"], Rollback: a.hasWord("rollback"), Grace: time.Duration(a.intValue("grace")) * time.Second,
	}
	switch {
	case a.hasWord("drain"):
		req.Grace = checkpoint.DrainGrace
	case a.hasWord("pause"):
		req.Grace = checkpoint.PauseGrace
	}
	run, err := s.engine.Cancel(s.t.Context(), req)
	if err != nil || a.hasWord("bg") {
		return err
	}
	_, err = s.engine.WaitRun(s.t.Context(), a.positional[0], run.ID)
	require.NoError(s.t, err)
	return s.showEvents(a, nil)
}

func (s *scenarioRunner) showRunState(a commandArgs, _ []string) error {
	r, err := s.engine.Run(s.t.Context(), nil, a.positional[0], a.named["run"])
	if err != nil {
		return err
	}
	s.printLine("%s", strings.TrimSpace(string(r.State)+" "+string(r.Output)))
	return nil
}

func (s *scenarioRunner) updateState(a commandArgs, _ []string) error {
	snap, err := s.engine.UpdateState(s.t.Context(), runtime.UpdateStateRequest{
		Thread: a.positional[0], Values: a.jsonValue("values"), AsNode: fullNodeName(a.named["as"]), Namespace: a.named["in"],
		Checkpoint: s.findCheckpoint(a.positional[0], a.named["in"], a.named["at"]), SupersedeInterrupts: a.hasWord("supersede"),
	})
	if err != nil {
		return err
	}
	s.showSnapshot(snap, "")
	return s.skipEvents(a.positional[0])
}

// skipEvents leaves out the events so far.
func (s *scenarioRunner) skipEvents(thread string) error {
	head, err := s.engine.Thread(context.Background(), thread)
	s.shownUpTo[thread] = head.LastEvent
	return err
}
