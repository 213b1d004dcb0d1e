package agentserver

import (
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// eventRequest is the body of POST /threads/{id}/stream/events, of protocol v2.
type eventRequest struct {
	Channels   []string   `json:"channels"`
	Namespaces [][]string `json:"namespaces"`
	Depth      *int       `json:"depth"`
	Since      *uint64    `json:"since"`
}

// Bounds of a request for events.
const (
	mostChannels   = 100
	mostNamespaces = 100
)

// eventChannels lists the channels of protocol v2, besides custom:NAME. Nothing comes of tools, which
// graphd does not know, and of checkpoints: @langchain/react 1.1 compares the numbers of their steps,
// and shows a branch from an older checkpoint as something old. LangGraph Server sends none either.
func eventChannels() []string {
	return []string{"values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"}
}

const customPrefix = "custom:"

func (r *eventRequest) validateRequest() error {
	if len(r.Channels) == 0 {
		return invalidField("channels", "is empty: want one or more of %s, or custom:NAME", strings.Join(eventChannels(), ", "))
	}
	if len(r.Channels) > mostChannels || len(r.Namespaces) > mostNamespaces {
		return invalidField("channels", "and namespaces have %d and %d entries: want at most %d and %d", len(r.Channels), len(r.Namespaces), mostChannels, mostNamespaces)
	}
	for _, channel := range r.Channels {
		if !slices.Contains(eventChannels(), channel) && !strings.HasPrefix(channel, customPrefix) {
			return invalidField("channels", "has %.100q: want %s, or custom:NAME", channel, strings.Join(eventChannels(), ", "))
		}
	}
	if r.Depth != nil && *r.Depth < 0 {
		return invalidField("depth", "is %d: want 0 or more", *r.Depth)
	}
	return nil
}

// includesEvent reports whether an event of a channel and a namespace is asked for. The events of
// custom:NAME are also of the channel custom. A depth counts below one of the namespaces.
func (r *eventRequest) includesEvent(channel string, namespace []string) bool {
	base, _, _ := strings.Cut(channel, ":")
	if !slices.Contains(r.Channels, channel) && !slices.Contains(r.Channels, base) {
		return false
	}
	return len(r.Namespaces) == 0 || slices.ContainsFunc(r.Namespaces, func(prefix []string) bool {
		return isBelow(namespace, prefix) && (r.Depth == nil || len(namespace)-len(prefix) <= *r.Depth)
	})
}

// isBelow reports whether a namespace begins with a prefix. An element without a task stands for all
// tasks of its node.
func isBelow(namespace, prefix []string) bool {
	if len(prefix) > len(namespace) {
		return false
	}
	for i, element := range prefix {
		node, _, _ := strings.Cut(namespace[i], ":")
		if element != namespace[i] && element != node {
			return false
		}
	}
	return true
}

// newFilter returns the filter of the events of graphd that show what is asked for. Tasks and updates
// are always among them: they tell when subgraphs begin and end, and have the same numbers then.
func (r *eventRequest) newFilter() *graphdv1.EventFilter {
	filter := &graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_TASKS}}
	for _, needed := range []struct {
		name    string
		channel graphdv1.Channel
	}{
		{"values", graphdv1.Channel_CHANNEL_VALUES}, {"messages", graphdv1.Channel_CHANNEL_MESSAGES}, {"custom", graphdv1.Channel_CHANNEL_CUSTOM},
	} {
		if slices.ContainsFunc(r.Channels, func(c string) bool { base, _, _ := strings.Cut(c, ":"); return base == needed.name }) {
			filter.Channels = append(filter.Channels, needed.channel)
		}
	}
	return filter
}
