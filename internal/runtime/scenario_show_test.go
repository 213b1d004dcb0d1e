package runtime_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// events shows what happened on a thread since the last look, and which nodes
// were entered, unless noran says that they race. Inside a superstep the order
// of events is that of completion and means nothing, so neighbours are sorted.
func (s *stage) events(a args, _ []string) error {
	thread := a.list[0]
	events, err := s.store.Events(s.t.Context(), thread, s.seen[thread], 0)
	if err != nil {
		return err
	}
	var group []checkpoint.Event
	flush := func() {
		slices.SortStableFunc(group, func(a, b checkpoint.Event) int { return strings.Compare(rank(a), rank(b)) })
		for _, e := range group {
			s.line("%s", s.event(thread, e))
		}
		group = nil
	}
	for _, e := range events {
		s.seen[thread] = e.Seq
		if e.Namespace != "" && !a.has("sub") && e.Kind != checkpoint.EventInterrupt {
			continue
		}
		switch {
		case e.Kind == checkpoint.EventUpdate, e.Kind == checkpoint.EventInterrupt, e.Phase == checkpoint.PhaseFailed:
			group = append(group, e)
		case e.Phase == checkpoint.PhaseRestarted, e.Kind != checkpoint.EventTask && e.Kind != checkpoint.EventCheckpoint:
			flush()
			s.line("%s", s.event(thread, e))
		}
	}
	flush()
	if ran := s.actors.take(); ran != "" && !a.has("noran") {
		s.line("ran: %s", ran)
	}
	return nil
}

// rank sorts events that have no order of their own.
func rank(e checkpoint.Event) string {
	key := pregel.NodePath(e.Namespace) + "/" + e.Node + " " + string(e.Kind) + string(e.Value)
	for _, q := range e.Interrupts {
		key += string(q.Value)
	}
	return key
}

// event is one line.
func (s *stage) event(thread string, e checkpoint.Event) string {
	where := pregel.NodePath(e.Namespace)
	if where != "" {
		where += "/"
	}
	switch e.Kind {
	case checkpoint.EventRunState:
		return strings.TrimSpace("run " + string(e.State) + " " + failure(e.Failure))
	case checkpoint.EventUpdate:
		if e.Cached {
			return fmt.Sprintf("%s%s %s (cached)", where, e.Node, e.Value)
		}
		return fmt.Sprintf("%s%s %s", where, e.Node, e.Value)
	case checkpoint.EventValues:
		return fmt.Sprintf("%s= %s", where, s.valuesOf(thread, e))
	case checkpoint.EventTask:
		if e.Phase == checkpoint.PhaseRestarted {
			return fmt.Sprintf("%s%s begins anew, attempt %d", where, e.Node, e.Attempt)
		}
		return fmt.Sprintf("%s%s failed %s", where, e.Node, failure(e.Failure))
	case checkpoint.EventInterrupt:
		return where + s.questions(e.Interrupts)
	case checkpoint.EventResolved:
		var list []string
		for _, q := range e.Interrupts {
			list = append(list, s.name("i", q.ID)+" "+string(q.State))
			if q.State == checkpoint.InterruptSuperseded && q.Response != "" {
				list[len(list)-1] += " after " + string(q.Response)
			}
		}
		slices.Sort(list)
		return "resolved " + strings.Join(list, ", ")
	case checkpoint.EventCustom:
		return fmt.Sprintf("%s%s emits %s %s", where, e.Node, e.Name, e.Value)
	default:
		return string(e.Kind)
	}
}

// valuesOf reads the state that an event stands for, as followers do. A
// rollback leaves events whose checkpoint is gone.
func (s *stage) valuesOf(thread string, e checkpoint.Event) payload.JSON {
	if e.Value != "" {
		return e.Value
	}
	v, err := s.engine.StateAt(s.t.Context(), thread, e.Namespace, e.Checkpoint)
	if reason(err) == runtime.ReasonCheckpointNotFound {
		return "taken back"
	}
	require.NoError(s.t, err)
	return v
}

func failure(f *checkpoint.Failure) string {
	if f == nil {
		return ""
	}
	return strings.TrimSpace(f.Reason + " " + f.Message)
}

func (s *stage) questions(list []checkpoint.Interrupt) string {
	var out []string
	for _, q := range list {
		if q.Reason == checkpoint.ReasonBreakpoint {
			out = append(out, fmt.Sprintf("%s (%s)", q.Message, s.name("i", q.ID)))
			continue
		}
		text := fmt.Sprintf("%s asks %s (%s)", q.Node, q.Value, s.name("i", q.ID))
		if q.State != checkpoint.InterruptOpen {
			text += " " + string(q.State)
		}
		if q.Round > 0 {
			text += fmt.Sprintf(" in place of %s: %s differs", s.name("i", q.Replaces), strings.Join(q.Differs, ","))
		}
		if q.Accepted != nil {
			text += ", though " + strings.Join(q.Accepted, ",") + " differs"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (s *stage) state(a args, _ []string) error {
	snap, err := s.engine.State(s.t.Context(), runtime.StateRequest{
		Thread: a.list[0], Namespace: a.keys["in"], Subgraphs: a.has("sub"),
		Checkpoint: s.checkpoint(a.list[0], a.keys["in"], a.keys["at"]), Keys: a.names("keys"),
	})
	if err != nil {
		return err
	}
	s.snapshot(snap, "")
	head, err := s.engine.Thread(s.t.Context(), a.list[0])
	if err != nil {
		return err
	}
	s.line("thread %s open %d", head.State, head.Open)
	return nil
}

// snapshot shows a state; what is empty is left out.
func (s *stage) snapshot(snap runtime.Snapshot, margin string) {
	c := snap.Checkpoint
	text := margin + string(snap.Values)
	if len(snap.Next) > 0 {
		text += " next " + strings.Join(snap.Next, ",")
	}
	if c != nil && c.ID != "" {
		text += fmt.Sprintf(" at %s %s %d", spot(c.ID), c.Source, c.Step)
	}
	if c != nil && c.Parent != "" {
		text += " from " + spot(c.Parent)
	}
	s.line("%s", strings.TrimRight(text, " "))
	for _, t := range snap.Tasks {
		s.task(t, margin+"  ")
	}
	for _, q := range snap.Interrupts {
		if q.Task == "" {
			s.line("%s  %s", margin, s.questions([]checkpoint.Interrupt{q}))
		}
	}
}

func (s *stage) task(t runtime.SnapshotTask, margin string) {
	text := margin + s.name("t", t.ID) + " " + t.Node
	if t.Result != "" {
		text += " did " + string(t.Result)
	}
	if t.Failure != nil {
		text += " failed " + failure(t.Failure)
	}
	for _, q := range t.Interrupts {
		if q.Task != "" {
			text += ", " + s.questions([]checkpoint.Interrupt{q})
		}
	}
	s.line("%s", text)
	if t.State != nil {
		s.snapshot(*t.State, margin+"  ")
	}
}

func (s *stage) history(a args, _ []string) error {
	list, _, err := s.engine.States(s.t.Context(), runtime.HistoryQuery{
		Thread: a.list[0], Namespace: a.keys["in"], Values: true, Limit: a.number("limit"),
		Before: uint64(number(strings.TrimPrefix(a.keys["before"], "c"))),
	})
	if err != nil {
		return err
	}
	for _, snap := range list {
		s.snapshot(snap, "")
	}
	return nil
}

// raw shows what a store keeps of the newest checkpoint: versions, and what
// each node has seen.
func (s *stage) raw(a args, _ []string) error {
	c, err := s.store.Checkpoint(s.t.Context(), a.list[0], a.keys["in"], "")
	if err != nil {
		return err
	}
	for _, ch := range c.Channels {
		if ch.Version == 0 {
			continue
		}
		text := fmt.Sprintf("%s v%d", ch.Name, ch.Version)
		if ch.List != nil {
			text += " " + string(payload.Array(ch.List.Items))
		} else if ch.Value != "" {
			text += " " + string(ch.Value)
		}
		s.line("%s", text)
	}
	for _, n := range c.Seen {
		var list []string
		for _, v := range n.Versions {
			list = append(list, fmt.Sprintf("%s v%d", v.Channel, v.Version))
		}
		s.line("%s saw %s", n.Node, strings.Join(list, ", "))
	}
	s.line("updated %s", strings.Join(c.Updated, ", "))
	return nil
}

func (s *stage) inbox(args, []string) error {
	list, err := s.engine.Interrupts(s.t.Context(), checkpoint.InterruptQuery{
		States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	if err != nil {
		return err
	}
	for _, q := range list {
		s.line("%s: %s", q.Thread, s.questions([]checkpoint.Interrupt{q}))
	}
	return nil
}
