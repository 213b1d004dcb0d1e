package engine_test

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

// showEvents shows what happened on a thread since the last look, and which nodes
// were entered, unless noran says that they race. Inside a superstep the order
// of events is that of completion and means nothing, so neighbours are sorted.
func (s *scenarioRunner) showEvents(a commandArgs, _ []string) error {
	thread := a.positional[0]
	events, err := s.store.Events(s.t.Context(), thread, s.shownUpTo[thread], 0)
	if err != nil {
		return err
	}
	var group []checkpoint.Event
	flush := func() {
		slices.SortStableFunc(group, func(a, b checkpoint.Event) int { return strings.Compare(eventSortKey(a), eventSortKey(b)) })
		for _, e := range group {
			s.printLine("%s", s.formatEvent(thread, e))
		}
		group = nil
	}
	for _, e := range events {
		s.shownUpTo[thread] = e.Seq
		if e.Namespace != "" && !a.hasWord("sub") && e.Kind != checkpoint.EventInterrupt {
			continue
		}
		switch {
		case e.Kind == checkpoint.EventUpdate, e.Kind == checkpoint.EventInterrupt, e.Phase == checkpoint.PhaseFailed:
			group = append(group, e)
		case e.Phase == checkpoint.PhaseRestarted, e.Kind != checkpoint.EventTask && e.Kind != checkpoint.EventCheckpoint:
			flush()
			s.printLine("%s", s.formatEvent(thread, e))
		}
	}
	flush()
	if ran := s.executor.takeEntered(); ran != "" && !a.hasWord("noran") {
		s.printLine("ran: %s", ran)
	}
	return nil
}

// eventSortKey sorts events that have no order of their own.
func eventSortKey(e checkpoint.Event) string {
	key := pregel.NodePath(e.Namespace) + "/" + e.Node + " " + string(e.Kind) + string(e.Value)
	for _, q := range e.Interrupts {
		key += string(q.Value)
	}
	return key
}

// formatEvent formats one line.
func (s *scenarioRunner) formatEvent(thread string, e checkpoint.Event) string {
	where := pregel.NodePath(e.Namespace)
	if where != "" {
		where += "/"
	}
	switch e.Kind {
	case checkpoint.EventRunState:
		return strings.TrimSpace("run " + string(e.State) + " " + failureText(e.Failure))
	case checkpoint.EventUpdate:
		if e.Cached {
			return fmt.Sprintf("%s%s %s (cached)", where, e.Node, e.Value)
		}
		return fmt.Sprintf("%s%s %s", where, e.Node, e.Value)
	case checkpoint.EventValues:
		return fmt.Sprintf("%s= %s", where, s.readValues(thread, e))
	case checkpoint.EventTask:
		if e.Phase == checkpoint.PhaseRestarted {
			return fmt.Sprintf("%s%s begins anew, attempt %d", where, e.Node, e.Attempt)
		}
		return fmt.Sprintf("%s%s failed %s", where, e.Node, failureText(e.Failure))
	case checkpoint.EventInterrupt:
		return where + s.formatInterrupts(e.Interrupts)
	case checkpoint.EventResolved:
		var list []string
		for _, q := range e.Interrupts {
			list = append(list, s.nameOf("i", q.ID)+" "+string(q.State))
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

// readValues reads the state that an event stands for, as followers do. A
// rollback leaves events whose checkpoint is gone.
func (s *scenarioRunner) readValues(thread string, e checkpoint.Event) payload.JSON {
	if e.Value != "" {
		return e.Value
	}
	v, err := s.engine.ValuesAt(s.t.Context(), nil, thread, e.Namespace, e.Checkpoint)
	if errorReason(err) == runtime.ReasonCheckpointNotFound {
		return "taken back"
	}
	require.NoError(s.t, err)
	return v
}

func failureText(f *checkpoint.Failure) string {
	if f == nil {
		return ""
	}
	return strings.TrimSpace(f.Reason + " " + f.Message)
}

func (s *scenarioRunner) formatInterrupts(list []checkpoint.Interrupt) string {
	var out []string
	for _, q := range list {
		if q.Reason == checkpoint.ReasonBreakpoint {
			out = append(out, fmt.Sprintf("%s (%s)", q.Message, s.nameOf("i", q.ID)))
			continue
		}
		text := fmt.Sprintf("%s asks %s (%s)", q.Node, q.Value, s.nameOf("i", q.ID))
		if q.State != checkpoint.InterruptOpen {
			text += " " + string(q.State)
		}
		if q.Round > 0 {
			text += fmt.Sprintf(" in place of %s: %s differs", s.nameOf("i", q.Replaces), strings.Join(q.Differs, ","))
		}
		if q.Accepted != nil {
			text += ", though " + strings.Join(q.Accepted, ",") + " differs"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (s *scenarioRunner) showState(a commandArgs, _ []string) error {
	snap, err := s.engine.State(s.t.Context(), runtime.StateRequest{
		Thread: a.positional[0], Namespace: a.named["in"], WithSubgraphs: a.hasWord("sub"),
		Checkpoint: s.findCheckpoint(a.positional[0], a.named["in"], a.named["at"]), Keys: a.nameList("keys"),
	})
	if err != nil {
		return err
	}
	s.showSnapshot(snap, "")
	head, err := s.engine.Thread(s.t.Context(), a.positional[0])
	if err != nil {
		return err
	}
	s.printLine("thread %s open %d", head.State, head.Open)
	return nil
}

// showSnapshot shows a state; what is empty is left out.
func (s *scenarioRunner) showSnapshot(snap runtime.Snapshot, margin string) {
	c := snap.Checkpoint
	text := margin + string(snap.Values)
	if len(snap.Next) > 0 {
		text += " next " + strings.Join(snap.Next, ",")
	}
	if c != nil && c.ID != "" {
		text += fmt.Sprintf(" at %s %s %d", shortID(c.ID), c.Source, c.Step)
	}
	if c != nil && c.Parent != "" {
		text += " from " + shortID(c.Parent)
	}
	s.printLine("%s", strings.TrimRight(text, " "))
	for _, t := range snap.Tasks {
		s.showTask(t, margin+"  ")
	}
	for _, q := range snap.Interrupts {
		if q.Task == "" {
			s.printLine("%s  %s", margin, s.formatInterrupts([]checkpoint.Interrupt{q}))
		}
	}
}

func (s *scenarioRunner) showTask(t runtime.SnapshotTask, margin string) {
	text := margin + s.nameOf("t", t.ID) + " " + t.Node
	if t.IsSent {
		text += fmt.Sprintf(" of Send %d", t.SendIndex)
	}
	if t.HandledTask != "" {
		text += " for " + s.nameOf("t", t.HandledTask)
	}
	if t.Result != "" {
		text += " did " + string(t.Result)
	}
	if t.Failure != nil {
		text += " failed " + failureText(t.Failure)
	}
	for _, q := range t.Interrupts {
		if q.Task != "" {
			text += ", " + s.formatInterrupts([]checkpoint.Interrupt{q})
		}
	}
	s.printLine("%s", text)
	if t.State != nil {
		s.showSnapshot(*t.State, margin+"  ")
	}
}

func (s *scenarioRunner) showHistory(a commandArgs, _ []string) error {
	list, _, err := s.engine.States(s.t.Context(), runtime.HistoryQuery{
		Thread: a.positional[0], Namespace: a.named["in"], WithValues: true, Limit: a.intValue("limit"),
		Before: uint64(parseNumber(strings.TrimPrefix(a.named["before"], "c"))),
	})
	if err != nil {
		return err
	}
	for _, snap := range list {
		s.showSnapshot(snap, "")
	}
	return nil
}

// showRaw shows what a store keeps of the newest checkpoint: versions, and what
// each node has seen.
func (s *scenarioRunner) showRaw(a commandArgs, _ []string) error {
	c, err := s.store.Checkpoint(s.t.Context(), a.positional[0], a.named["in"], "")
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
		s.printLine("%s", text)
	}
	for _, n := range c.Seen {
		var list []string
		for _, v := range n.Versions {
			list = append(list, fmt.Sprintf("%s v%d", v.Channel, v.Version))
		}
		s.printLine("%s saw %s", n.Node, strings.Join(list, ", "))
	}
	s.printLine("updated %s", strings.Join(c.Updated, ", "))
	return nil
}

func (s *scenarioRunner) showInterrupts(commandArgs, []string) error {
	list, err := s.engine.Interrupts(s.t.Context(), nil, checkpoint.InterruptQuery{
		States: []checkpoint.InterruptState{checkpoint.InterruptOpen},
	})
	if err != nil {
		return err
	}
	for _, q := range list {
		s.printLine("%s: %s", q.Thread, s.formatInterrupts([]checkpoint.Interrupt{q}))
	}
	return nil
}
