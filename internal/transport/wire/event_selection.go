package wire

import (
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// EventSelection is a parsed EventFilter.
type EventSelection struct {
	kinds               map[checkpoint.EventKind]bool
	HasCheckpointValues bool // checkpoints come with values
	namespaces          [][]string
	depth               int // -1 = any
	customNames         []string
}

// maxSelectionEntries bounds the lists of a filter.
const maxSelectionEntries = 100

// EventSelectionFromProto parses a filter of events, nil = the default. A filter without
// channels selects updates, messages and custom events. Violations of the filter go to
// b.
func EventSelectionFromProto(v *Validator, f *graphdv1.EventFilter) EventSelection {
	s := EventSelection{kinds: make(map[checkpoint.EventKind]bool), depth: -1, customNames: f.GetCustomNames()}
	if f != nil && f.Depth != nil {
		s.depth = v.ConvertLimit("filter.depth", f.GetDepth())
	}
	channels := f.GetChannels()
	if len(channels) == 0 {
		channels = []graphdv1.Channel{
			graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_MESSAGES, graphdv1.Channel_CHANNEL_CUSTOM,
		}
	}
	for i, c := range channels {
		s.addChannel(v, elementPath("filter.channels", i), c)
	}
	if n := max(len(channels), len(f.GetNamespaces()), len(f.GetCustomNames())); n > maxSelectionEntries {
		v.AddViolation("filter", "a list has %d entries; at most %d are allowed", n, maxSelectionEntries)
		return s
	}
	for i, n := range f.GetNamespaces() {
		at := elementPath("filter.namespaces", i) + ".path"
		v.RequireSet(at, len(n.GetPath()) > 0)
		NamespaceFromProto(v, at, n.GetPath())
		s.namespaces = append(s.namespaces, n.GetPath())
	}
	for i, n := range f.GetCustomNames() {
		v.CheckText(elementPath("filter.custom_names", i), n)
	}
	return s
}

// addChannel adds the event kinds of a channel, or a violation for an unknown channel.
func (s *EventSelection) addChannel(v *Validator, at string, c graphdv1.Channel) {
	switch c {
	case graphdv1.Channel_CHANNEL_UPDATES:
		s.kinds[checkpoint.EventUpdate] = true
	case graphdv1.Channel_CHANNEL_VALUES:
		s.kinds[checkpoint.EventValues] = true
	case graphdv1.Channel_CHANNEL_MESSAGES:
		s.kinds[checkpoint.EventMessage] = true
	case graphdv1.Channel_CHANNEL_CUSTOM:
		s.kinds[checkpoint.EventCustom] = true
	case graphdv1.Channel_CHANNEL_TASKS:
		s.kinds[checkpoint.EventTask] = true
	case graphdv1.Channel_CHANNEL_CHECKPOINTS:
		s.kinds[checkpoint.EventCheckpoint] = true
	case graphdv1.Channel_CHANNEL_DEBUG:
		s.kinds[checkpoint.EventTask] = true
		s.kinds[checkpoint.EventCheckpoint] = true
		s.HasCheckpointValues = true
	case graphdv1.Channel_CHANNEL_UNSPECIFIED:
		v.AddViolation(at, "must be a channel; leave the list empty for updates, messages and custom")
	}
}

// SelectsEvent reports whether an event is delivered. It always selects changes of
// runs and interrupts, and tasks that no worker can run, because a client that
// misses such an event would wait for ever.
func (s *EventSelection) SelectsEvent(e *checkpoint.Event) bool {
	switch e.Kind {
	case checkpoint.EventRunState, checkpoint.EventInterrupt, checkpoint.EventResolved, runtime.EventGap:
		return true
	case checkpoint.EventUpdate, checkpoint.EventValues, checkpoint.EventTask, checkpoint.EventCheckpoint,
		checkpoint.EventCustom, checkpoint.EventMessage:
	}
	if e.Phase == checkpoint.PhaseUnassigned {
		return true // the run may wait for an operator
	}
	if !s.kinds[e.Kind] && !s.isRestartOfShown(e) {
		return false
	}
	if e.Kind == checkpoint.EventCustom && len(s.customNames) > 0 && !slices.Contains(s.customNames, e.Name) {
		return false
	}
	return s.selectsNamespace(e.Namespace)
}

// isRestartOfShown reports whether an event invalidates messages or custom events
// that the client has seen.
func (s *EventSelection) isRestartOfShown(e *checkpoint.Event) bool {
	return e.Phase == checkpoint.PhaseRestarted &&
		(s.kinds[checkpoint.EventMessage] || s.kinds[checkpoint.EventCustom])
}

func (s *EventSelection) selectsNamespace(namespace string) bool {
	if s.depth < 0 && len(s.namespaces) == 0 {
		return true
	}
	path := namespaceToProto(namespace)
	if s.depth >= 0 && len(path) > s.depth {
		return false
	}
	return len(s.namespaces) == 0 || slices.ContainsFunc(s.namespaces, func(prefix []string) bool {
		return isPathWithin(path, prefix)
	})
}

// isPathWithin reports whether a path lies at or below a prefix whose elements may
// leave out the task.
func isPathWithin(path, prefix []string) bool {
	if len(path) < len(prefix) {
		return false
	}
	for i, want := range prefix {
		node, _, _ := strings.Cut(path[i], ":")
		if want != path[i] && want != node {
			return false
		}
	}
	return true
}

// SelectsKind reports whether events of a kind are selected.
func (s *EventSelection) SelectsKind(kind checkpoint.EventKind) bool { return s.kinds[kind] }
