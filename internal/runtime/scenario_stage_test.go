package runtime_test

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
)

// stage is an engine on a store, with names for what is random: i1 is
// the first question that was seen, t1 the first task, c7 the checkpoint
// numbered 7.
type stage struct {
	t      *testing.T
	store  checkpoint.Store
	actors *actors
	graphs catalog
	engine *runtime.Engine

	seen   map[string]uint64 // last event shown, by thread
	names  map[string]string // of questions and tasks
	counts map[string]int
	runs   map[string]string // the run that a command left in the background, by thread
	say    strings.Builder
	// expressive makes expressions of all nodes that only compute.
	expressive bool
	// together is how many supersteps may share a commit; 0 = as many as usual,
	// and only expressive makes expressions.
	together int
}

func newStage(t *testing.T, store checkpoint.Store) *stage {
	t.Helper()
	s := &stage{
		t: t, store: store, graphs: catalog{},
		actors: &actors{code: make(map[string]string), counter: make(map[string]int), computed: make(map[string]bool)},
		seen:   make(map[string]uint64), names: make(map[string]string),
		counts: make(map[string]int), runs: make(map[string]string),
	}
	s.start()
	return s
}

func (s *stage) start() {
	s.engine = runtime.New(s.t.Context(), s.store, s.graphs, s.actors, schemas{}, runtime.Options{Owner: "o", Together: s.together})
}

// schemas knows one word of JSON Schema: a value must be of the type.
type schemas struct{}

func (schemas) Check(_ context.Context, schema, value payload.JSON) ([]runtime.Violation, error) {
	want, _ := payload.Lookup(schema, "type")
	if got := payload.KindOf(value).String(); string(want) != strconv.Quote(got) {
		return []runtime.Violation{{Description: "must be " + string(want) + ", not " + got}}, nil
	}
	return nil, nil
}

// args are the words of a command: positions first, then key=value.
type args struct {
	list []string
	keys map[string]string
	all  []string // key=value in their order
}

func parseArgs(line string) args {
	a := args{keys: make(map[string]string)}
	for _, w := range words(line) {
		key, value, ok := strings.Cut(w, "=")
		if !ok || strings.ContainsAny(key, `{["`) {
			a.list = append(a.list, w)
			continue
		}
		a.keys[key] = value
		a.all = append(a.all, w)
	}
	return a
}

func (a args) has(word string) bool { return slices.Contains(a.list, word) }

// graph is the second position, unless it is one of the switches.
func (a args) graph() string {
	if len(a.list) < 2 || slices.Contains([]string{"sub", "bg", "timed", "noran"}, a.list[1]) {
		return ""
	}
	return a.list[1]
}

func (a args) names(key string) []string {
	if a.keys[key] == "" {
		return nil
	}
	return strings.Split(a.keys[key], ",")
}

func (a args) number(key string) int { return number(a.keys[key]) }

func (a args) json(key string) payload.JSON { return payload.JSON(a.keys[key]) }

func (a args) sends() []checkpoint.Send {
	var out []checkpoint.Send
	for _, w := range a.all {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "goto":
			out = append(out, checkpoint.Send{Node: end(value)})
		case "send":
			node, input, _ := strings.Cut(value, ":")
			out = append(out, checkpoint.Send{Node: node, Input: payload.JSON(input)})
		}
	}
	return out
}

// do performs a command and returns what is to be seen of it.
func (s *stage) do(b block) string {
	s.say.Reset()
	verb, rest, _ := strings.Cut(b.command, " ")
	a := parseArgs(rest)
	verbs := map[string]func(args, []string) error{
		"graph": s.graph, "start": s.begin, "resume": s.resume, "state": s.state, "history": s.history,
		"update": s.update, "cancel": s.cancel, "wait": s.wait, "raw": s.raw, "inbox": s.inbox,
		"count": s.count, "sleep": s.sleep, "restart": s.restart, "events": s.events, "run": s.run,
	}
	do, ok := verbs[verb]
	require.True(s.t, ok, "line %d: no command %q", b.line, verb)
	if err := do(a, b.body); err != nil {
		s.refused(err)
	}
	return s.say.String()
}

func (s *stage) line(format string, values ...any) {
	fmt.Fprintf(&s.say, format+"\n", values...)
}

// refused shows an error with all that a client gets of it.
func (s *stage) refused(err error) {
	var e *runtime.Error
	if !errors.As(err, &e) {
		if build, ok := errors.AsType[*graph.BuildError](err); ok {
			for _, p := range build.Problems {
				s.line("error %s %s", p.Reason, p.Path)
			}
			return
		}
		s.line("error ! %v", err)
		return
	}
	text := "error " + e.Reason
	for _, k := range slices.Sorted(maps.Keys(e.Meta)) {
		if k != "threadId" && k != "activeRunId" && k != "runId" {
			text += " " + k + "=" + s.known(e.Meta[k])
		}
	}
	for _, v := range e.Violations {
		text += " (" + v.Field + ": " + v.Description + ")"
	}
	s.line("%s", text)
}

// known puts names for the ids in a list.
func (s *stage) known(list string) string {
	ids := strings.Split(list, ",")
	for i, id := range ids {
		if n, ok := s.names[id]; ok {
			ids[i] = n
		} else {
			ids[i] = spot(id)
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, ",")
}

// spot is the short form of a checkpoint id, whose front is a number.
func spot(id string) string {
	front, _, ok := strings.Cut(id, "-")
	n, err := strconv.ParseUint(front, 16, 64)
	if !ok || err != nil || len(front) != 12 {
		return id
	}
	return "c" + strconv.FormatUint(n, 10)
}

// name gives an id the next free name of its kind.
func (s *stage) name(kind, id string) string {
	if s.names[id] == "" {
		s.counts[kind]++
		s.names[id] = kind + strconv.Itoa(s.counts[kind])
	}
	return s.names[id]
}

// id finds what a name stands for.
func (s *stage) id(name string) string {
	for id, n := range s.names {
		if n == name {
			return id
		}
	}
	return name
}

// checkpoint finds a checkpoint of a namespace by its short form.
func (s *stage) checkpoint(thread, namespace, short string) string {
	if short == "" {
		return ""
	}
	list, err := s.store.Checkpoints(s.t.Context(), checkpoint.CheckpointQuery{
		Thread: thread, Namespace: namespace, AnyTask: namespace != "",
	})
	require.NoError(s.t, err)
	for _, c := range list {
		if spot(c.ID) == short {
			return c.ID
		}
	}
	return short
}

func (s *stage) graph(a args, body []string) error {
	spec, code, err := parseGraph(append(slices.Clone(a.list), a.all...), body)
	require.NoError(s.t, err)
	switch {
	case s.expressive:
		express(spec, code)
	case s.together > 0:
		nature(spec)
	}
	for n, c := range code {
		s.actors.code[spec.Name+"/"+n] = c
	}
	g, err := graph.Compile(spec, graph.Env{Expressions: newExpr(), Lookup: s.graphs.lookup})
	if err != nil {
		return err
	}
	s.graphs[spec.Name] = g
	return nil
}

func (s *stage) count(a args, _ []string) error {
	for _, w := range a.all {
		key, value, _ := strings.Cut(w, "=")
		s.actors.count(key, number(value)-s.actors.count(key, 0))
	}
	for _, k := range a.list {
		s.line("%s %d", k, s.actors.count(k, 0))
	}
	return nil
}

func (s *stage) sleep(a args, _ []string) error {
	d, err := time.ParseDuration(a.list[0])
	require.NoError(s.t, err)
	timer := time.NewTimer(d)
	<-timer.C
	return nil
}

// restart ends the process and starts another one on the same store.
func (s *stage) restart(args, []string) error {
	s.engine.Close()
	s.start()
	return nil
}

// begin starts a run: start THREAD GRAPH input=… and the other fields of the
// request. sub shows subgraphs too, bg does not wait.
func (s *stage) begin(a args, _ []string) error {
	req := runtime.StartRequest{
		Thread: a.list[0], Graph: a.graph(), Run: a.keys["run"],
		Request: checkpoint.RunRequest{
			Input: a.json("input"), Update: a.json("update"), Goto: a.sends(),
			FromNamespace: a.keys["in"], From: s.checkpoint(a.list[0], a.keys["in"], a.keys["from"]),
			InterruptBefore: a.names("before"), InterruptAfter: a.names("after"),
			StepLimit: a.number("steps"), Context: a.json("context"),
			Expected: s.checkpoint(a.list[0], "", a.keys["expected"]),
		},
	}
	req.CreateThread = req.Graph != ""
	if a.keys["timeout"] != "" {
		d, err := time.ParseDuration(a.keys["timeout"])
		require.NoError(s.t, err)
		req.Request.Timeout = d
	}
	if a.keys["user"] != "" {
		req.Metadata = map[string]string{"user": a.keys["user"]}
	}
	req.Open = map[string]runtime.OpenPolicy{"discard": runtime.DiscardOpen, "enqueue": runtime.EnqueueOpen}[a.keys["open"]]
	req.Concurrency = map[string]runtime.Concurrency{
		"enqueue": runtime.Enqueue, "cancel": runtime.CancelActive, "rollback": runtime.RollbackActive,
	}[a.keys["busy"]]
	started, err := s.engine.Start(s.t.Context(), req)
	return s.follow(a, started, err)
}

// resume answers: value=… for the one question, i1=… by name, dismiss=i1,
// all, collect, update=…, goto=….
func (s *stage) resume(a args, _ []string) error {
	req := runtime.ResumeRequest{
		Thread: a.list[0], Update: a.json("update"), Goto: a.sends(),
		Expected: s.checkpoint(a.list[0], "", a.keys["expected"]),
	}
	switch {
	case a.has("all"):
		req.Coverage = runtime.All
	case a.has("collect"):
		req.Coverage = runtime.Collect
	}
	for _, w := range a.all {
		key, value, _ := strings.Cut(w, "=")
		switch {
		case key == "value":
			req.Single = &runtime.Response{Value: payload.JSON(value)}
		case key == "dismiss":
			req.Responses = append(req.Responses, runtime.Response{Interrupt: s.id(value), Dismissed: true, Note: "nobody"})
		case strings.HasPrefix(key, "i") && number(key[1:]) > 0 || key == "unknown":
			req.Responses = append(req.Responses, runtime.Response{Interrupt: s.id(key), Value: payload.JSON(value)})
		}
	}
	started, err := s.engine.Resume(s.t.Context(), req)
	return s.follow(a, started, err)
}

// follow waits for the run and shows what has happened since the last look;
// timed says how long it took by the clock of the world.
func (s *stage) follow(a args, started runtime.Started, err error) error {
	if err != nil {
		return err
	}
	if a.has("bg") {
		s.runs[a.list[0]] = started.Run.ID
		return nil
	}
	if started.Attached {
		s.line("attached")
	}
	if a.has("timed") {
		began := time.Now()
		defer func() { s.line("took %s", time.Since(began)) }()
	}
	if !a.has("collect") || started.Head.Open == 0 {
		if _, err := s.engine.WaitRun(s.t.Context(), started.Run.Thread, started.Run.ID); err != nil {
			return err
		}
	}
	return s.events(a, nil)
}

func (s *stage) wait(a args, _ []string) error {
	_, err := s.engine.WaitRun(s.t.Context(), a.list[0], or(a.keys["run"], s.runs[a.list[0]]))
	require.NoError(s.t, err)
	return s.events(a, nil)
}

func (s *stage) cancel(a args, _ []string) error {
	run, err := s.engine.Cancel(s.t.Context(), runtime.CancelRequest{
		Thread: a.list[0], Run: a.keys["run"], Rollback: a.has("rollback"), Grace: time.Duration(a.number("grace")) * time.Second,
	})
	if err != nil {
		return err
	}
	_, err = s.engine.WaitRun(s.t.Context(), a.list[0], run.ID)
	require.NoError(s.t, err)
	return s.events(a, nil)
}

func (s *stage) run(a args, _ []string) error {
	r, err := s.engine.Run(s.t.Context(), a.list[0], a.keys["run"])
	if err != nil {
		return err
	}
	s.line("%s", strings.TrimSpace(string(r.State)+" "+string(r.Output)))
	return nil
}

func (s *stage) update(a args, _ []string) error {
	snap, err := s.engine.UpdateState(s.t.Context(), runtime.UpdateStateRequest{
		Thread: a.list[0], Values: a.json("values"), AsNode: end(a.keys["as"]), Namespace: a.keys["in"],
		Checkpoint: s.checkpoint(a.list[0], a.keys["in"], a.keys["at"]), Supersede: a.has("supersede"),
	})
	if err != nil {
		return err
	}
	s.snapshot(snap, "")
	return s.skip(a.list[0])
}

// skip leaves out the events so far.
func (s *stage) skip(thread string) error {
	head, err := s.engine.Thread(context.Background(), thread)
	s.seen[thread] = head.LastEvent
	return err
}
