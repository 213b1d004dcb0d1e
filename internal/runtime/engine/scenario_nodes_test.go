package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// scriptExecutor runs the code of a scenario's nodes: steps between bars.
//
//	set a=["x"]            update a channel; more words set more of them
//	write a=["x"]          one more value for a channel
//	overwrite a=["x"]      replace the value, whatever the reducer
//	return "x"             the whole result as it is
//	ask "q"                ask; the answer is $1 for the first question, then $2
//	ask key="k" "q"        ask under a key; also message="m", reason=approval,
//	                       schema={…}, drift=fail, ignore=/at,message
//	askall "q1" "q2"       ask several at once, as tools that run side by side do
//	until 18 "q" "again"   ask until the answer is at least so much
//	goto x  ·  send x {…}  ·  parent
//	fail Boom              fail with a type; fail! is permanent
//	unless ok …            do the step only while the counter ok is 0
//	when 1 $in.i …         do the step only if the two are equal
//	first 2 k …            count k up, and do the step the first two times
//	count k                count up, outside of the graph
//	memo k                 count k up once per memo, $m is the value
//	sleep 1s  ·  emit name {…}  ·  ignore   (ignore: outlive the end of the attempt)
//
// In JSON, $in is the Send's input, $state.a a key, $n the attempt, $#k the
// counter k, $keys the keys the node sees, $failed what a handler takes over.
type scriptExecutor struct {
	mu       sync.Mutex
	scripts  map[string]string // by "graph/node"
	counters map[string]int
	entered  []nodeAttempt
	// ranInline are tasks that have run since: what only computes may be run again.
	ranInline map[string]bool
}

// nodeAttempt is one attempt that was begun.
type nodeAttempt struct {
	namespace string
	step      int
	node      string
}

// scriptRun is one attempt on its way through the steps.
type scriptRun struct {
	*scriptExecutor
	ctx        context.Context
	task       *runtime.Task
	result     pregel.Result
	update     []payload.Field
	answers    []string
	uses       map[string]int
	memo       string
	ignoresEnd bool
}

func (se *scriptExecutor) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	name := t.Node.Name
	if t.Router != "" {
		name = t.Router
	}
	se.mu.Lock()
	code, ok := se.scripts[t.Graph.Name+"/"+name]
	if t.Router == "" {
		e := nodeAttempt{pregel.NodePath(t.Namespace), t.Step, name}
		once := fmt.Sprint(t.ID, t.Attempt, len(t.Journal.Answers))
		again := (t.Node.Kind == graph.KindExpr || t.Node.Kind == graph.KindAsk) && se.ranInline[once]
		if se.ranInline[once] = true; !again {
			se.entered = append(se.entered, e)
		}
	}
	se.mu.Unlock()
	if !ok {
		return failedResult("no code for " + name)
	}
	s := &scriptRun{scriptExecutor: se, ctx: ctx, task: t, uses: make(map[string]int)}
	for step := range strings.SplitSeq(code, " | ") {
		if !s.runStep(strings.TrimSpace(step)) {
			return s.result
		}
	}
	if s.update != nil {
		s.result.Update = payload.Object(s.update)
	}
	if ctx.Err() != nil && !s.ignoresEnd {
		return failedResult("cut off")
	}
	return s.result
}

// runStep performs one step; false ends the attempt.
func (s *scriptRun) runStep(step string) bool {
	w := splitWords(step)
	if len(w) == 0 {
		return true
	}
	switch w[0] {
	case "set":
		for _, assignment := range w[1:] {
			key, value, _ := strings.Cut(assignment, "=")
			s.update = append(s.update, payload.Field{Key: key, Value: s.fillText(value)})
		}
	case "write", "overwrite":
		key, value, _ := strings.Cut(w[1], "=")
		s.result.Writes = append(s.result.Writes, checkpoint.Write{
			Channel: key, Value: s.fillText(value), Overwrite: w[0] == "overwrite",
		})
	case "return":
		s.result.Update = s.fillText(w[1])
	case "goto", "route":
		for name := range strings.SplitSeq(w[1], ",") {
			s.result.Goto = append(s.result.Goto, checkpoint.Send{Node: fullNodeName(name)})
		}
	case "send":
		s.result.Goto = append(s.result.Goto, checkpoint.Send{Node: fullNodeName(w[1]), Input: s.fillText(w[2])})
	case "parent":
		s.result.ToParent = true
	case "ask":
		return s.askInterrupt(w[1:])
	case "askall":
		return s.askAll(w[1:])
	case "until":
		return s.askUntil(w[1:])
	case "unless":
		if s.addCount(w[1], 0) == 0 {
			return s.runStep(strings.Join(w[2:], " "))
		}
	case "when":
		if s.fillText(w[1]) == s.fillText(w[2]) {
			return s.runStep(strings.Join(w[3:], " "))
		}
	case "first":
		if s.addCount(w[2], 1) <= parseNumber(w[1]) {
			return s.runStep(strings.Join(w[3:], " "))
		}
	case "fail", "fail!":
		r := failedResult(strings.Join(w[1:], " "))
		r.Failure.Type, r.Failure.Permanent = w[1], w[0] == "fail!"
		s.result = r
		return false
	case "count":
		s.addCount(w[1], 1)
	case "memo":
		return s.recordMemo(w[1])
	case "sleep":
		return s.sleepFor(strings.Trim(string(s.fillText(w[1])), `"`))
	case "emit":
		s.task.Effects.EmitEvent(runtime.Emission{
			Kind: checkpoint.EventCustom, Name: w[1], Value: s.fillText(w[2]), Durable: true,
		})
	case "ignore":
		s.ignoresEnd = true
	default:
		s.result = failedResult("cannot do " + step)
		return false
	}
	return true
}

// fillText fills the names in a JSON text with values.
func (s *scriptRun) fillText(t string) payload.JSON {
	if !strings.Contains(t, "$") {
		return payload.JSON(t)
	}
	pairs := []string{
		"$n", strconv.Itoa(s.task.Attempt), "$m", s.memo, "$in", orDefault(string(s.task.Send), "null"),
		"$keys", string(quoteNames(s.task.State.Keys())),
	}
	if f := s.task.Failed; f != nil {
		pairs = append(pairs, "$failed", string(payload.Quote(f.Node+" "+f.Message)))
	}
	for i, a := range s.answers {
		pairs = append(pairs, "$"+strconv.Itoa(i+1), a)
	}
	s.mu.Lock()
	for k, n := range s.counters {
		pairs = append(pairs, "$#"+k, strconv.Itoa(n))
	}
	s.mu.Unlock()
	for _, c := range s.task.Graph.Channels {
		v, _ := s.task.State.Lookup(c.Name)
		pairs = append(pairs, "$state."+c.Name, orDefault(string(v), "null"))
	}
	fields, _ := payload.Fields(s.task.Send)
	for _, in := range fields {
		pairs = append(pairs, "$in."+in.Key, string(in.Value))
	}
	// The longest name first, or $in would win over $in.a.
	return payload.JSON(strings.NewReplacer(longestFirst(pairs)...).Replace(t))
}

func longestFirst(pairs []string) []string {
	type pair struct{ key, value string }
	var all []pair
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, pair{pairs[i], pairs[i+1]})
	}
	slices.SortStableFunc(all, func(a, b pair) int { return len(b.key) - len(a.key) })
	var out []string
	for _, p := range all {
		out = append(out, p.key, p.value)
	}
	return out
}

func quoteNames(names []string) payload.JSON {
	items := make([]payload.JSON, len(names))
	for i, n := range names {
		items[i] = payload.Quote(n)
	}
	return payload.Array(items)
}

func orDefault(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// askInterrupt takes the next answer from the journal, or ends the attempt with the
// interrupt, as an SDK would.
func (s *scriptRun) askInterrupt(args []string) bool {
	a := pregel.Ask{}
	for len(args) > 1 {
		key, value, _ := strings.Cut(args[0], "=")
		switch key {
		case "key":
			a.Key = strings.Trim(value, `"`)
		case "schema":
			a.Schema = payload.JSON(value)
		case "message":
			a.Message = strings.Trim(string(s.fillText(value)), `"`)
		case "reason":
			a.Reason = value
		case "drift":
			a.Drift = checkpoint.Drift(value)
		case "ignore":
			a.DriftIgnore = strings.Split(value, ",")
		}
		args = args[1:]
	}
	a.Value, a.Index = s.fillText(args[0]), s.uses[a.Key]
	s.uses[a.Key]++
	for _, known := range s.task.Journal.Answers {
		if known.Key != a.Key || known.Index != a.Index {
			continue
		}
		if !s.fitsAnswer(&known, &a) {
			break
		}
		if known.Dismissed {
			s.result = failedResult("dismissed: " + known.Reason)
			return false
		}
		s.answers = append(s.answers, string(known.Value))
		return true
	}
	s.result = pregel.Result{Asks: []pregel.Ask{a}, UsedAnswers: s.result.UsedAnswers}
	return false
}

// fitsAnswer reports whether an answer may be used for an interrupt.
func (s *scriptRun) fitsAnswer(known *pregel.Answer, a *pregel.Ask) bool {
	a.SetDriftDefaults(s.task.Graph.Spec)
	if known.Matches(a) || a.Drift != checkpoint.DriftAccept {
		return known.Matches(a)
	}
	asked := *a
	s.result.UsedAnswers = append(s.result.UsedAnswers, pregel.UsedAnswer{Key: a.Key, Index: a.Index, AskedDigest: a.ShownDigest(), Asked: &asked})
	return true
}

func (s *scriptRun) askAll(questions []string) bool {
	var open []pregel.Ask
	for _, q := range questions {
		if !s.askInterrupt([]string{q}) {
			open = append(open, s.result.Asks...)
		}
	}
	s.result = pregel.Result{Asks: open}
	return len(open) == 0
}

func (s *scriptRun) askUntil(args []string) bool {
	question := args[1]
	for {
		if !s.askInterrupt([]string{question}) {
			return false
		}
		if parseNumber(s.answers[len(s.answers)-1]) >= parseNumber(args[0]) {
			return true
		}
		question = args[2]
	}
}

func (se *scriptExecutor) addCount(key string, by int) int {
	se.mu.Lock()
	defer se.mu.Unlock()
	se.counters[key] += by
	return se.counters[key]
}

func (s *scriptRun) recordMemo(key string) bool {
	for _, m := range s.task.Journal.Memos {
		if m.Key == key {
			s.memo = string(m.Value)
			return true
		}
	}
	value, _, err := s.task.Effects.RecordMemo(s.ctx, checkpoint.Memo{
		Key: key, Value: payload.JSON(strconv.Itoa(s.addCount(key, 1))),
	})
	if err != nil {
		s.result = failedResult(err.Error())
		return false
	}
	s.memo = string(value)
	return true
}

func (s *scriptRun) sleepFor(text string) bool {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.result = failedResult(err.Error())
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	if s.ignoresEnd {
		<-timer.C
		return true
	}
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		s.result = failedResult("cut off")
		return false
	}
}

// takeEntered tells which nodes were entered since the last call: supersteps between
// slashes, the nodes of one superstep sorted.
func (se *scriptExecutor) takeEntered() string {
	se.mu.Lock()
	defer se.mu.Unlock()
	clear(se.ranInline)
	groups := se.entered
	se.entered = nil
	var out []string
	for i := 0; i < len(groups); {
		var names []string
		j := i
		for ; j < len(groups) && groups[j].step == groups[i].step && groups[j].namespace == groups[i].namespace; j++ {
			names = append(names, groups[j].node)
		}
		slices.Sort(names)
		out = append(out, strings.Join(names, " "))
		i = j
	}
	return fmt.Sprint(strings.Join(out, " / "))
}
