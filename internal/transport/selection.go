package transport

import (
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// selection is an EventFilter made ready for use.
type selection struct {
	kinds      map[checkpoint.EventKind]bool
	debug      bool // checkpoints come with values
	namespaces [][]string
	depth      int // -1 = any
	customs    []string
}

// maxSelect bounds the lists of a filter.
const maxSelect = 100

func selectionIn(b *border, f *graphdv1.EventFilter) selection {
	s := selection{kinds: make(map[checkpoint.EventKind]bool), depth: -1, customs: f.GetCustomNames()}
	if f != nil && f.Depth != nil {
		s.depth = b.limit("filter.depth", f.GetDepth())
	}
	channels := f.GetChannels()
	if len(channels) == 0 {
		channels = []graphdv1.Channel{
			graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_MESSAGES, graphdv1.Channel_CHANNEL_CUSTOM,
		}
	}
	for i, c := range channels {
		s.channel(b, indexed("filter.channels", i), c)
	}
	if n := max(len(channels), len(f.GetNamespaces()), len(f.GetCustomNames())); n > maxSelect {
		b.refuse("filter", "a list has %d entries; at most %d are allowed", n, maxSelect)
		return s
	}
	for i, n := range f.GetNamespaces() {
		at := indexed("filter.namespaces", i) + ".path"
		b.must(at, len(n.GetPath()) > 0)
		namespaceIn(b, at, n.GetPath())
		s.namespaces = append(s.namespaces, n.GetPath())
	}
	for i, n := range f.GetCustomNames() {
		b.text(indexed("filter.custom_names", i), n)
	}
	return s
}

func (s *selection) channel(b *border, at string, c graphdv1.Channel) {
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
		s.debug = true
	case graphdv1.Channel_CHANNEL_UNSPECIFIED:
		b.refuse(at, "must be a channel; leave the list empty for updates, messages and custom")
	}
}

// wants reports whether an event is to be delivered. What runs and questions
// come to, and what no worker can run, is never filtered out: missing it would
// leave a client waiting for ever.
func (s *selection) wants(e *checkpoint.Event) bool {
	switch e.Kind {
	case checkpoint.EventRunState, checkpoint.EventInterrupt, checkpoint.EventResolved, runtime.EventGap:
		return true
	case checkpoint.EventUpdate, checkpoint.EventValues, checkpoint.EventTask, checkpoint.EventCheckpoint,
		checkpoint.EventCustom, checkpoint.EventMessage:
	}
	if e.Phase == checkpoint.PhaseUnassigned {
		return true // the run may wait for an operator
	}
	if !s.kinds[e.Kind] && !s.voids(e) {
		return false
	}
	if e.Kind == checkpoint.EventCustom && len(s.customs) > 0 && !slices.Contains(s.customs, e.Name) {
		return false
	}
	return s.inside(e.Namespace)
}

// voids reports whether an event says that messages or custom events which the
// client has seen count no more.
func (s *selection) voids(e *checkpoint.Event) bool {
	return e.Phase == checkpoint.PhaseRestarted &&
		(s.kinds[checkpoint.EventMessage] || s.kinds[checkpoint.EventCustom])
}

func (s *selection) inside(namespace string) bool {
	if s.depth < 0 && len(s.namespaces) == 0 {
		return true
	}
	path := namespaceOut(namespace)
	if s.depth >= 0 && len(path) > s.depth {
		return false
	}
	return len(s.namespaces) == 0 || slices.ContainsFunc(s.namespaces, func(prefix []string) bool {
		return within(path, prefix)
	})
}

// within reports whether a path lies at or below a prefix whose elements may
// leave out the task.
func within(path, prefix []string) bool {
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
