package stream

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// Selection selects the events that a command requests and shows.
type Selection struct {
	Filter *graphdv1.EventFilter
	// showsTasks shows all events of tasks. Otherwise people see those that explain
	// a delay, and programs none.
	showsTasks bool
}

// NewSelection parses names of event kinds, like "updates" and "values". The error
// is an *exit.UsageError.
func NewSelection(names []string, format output.Format) (Selection, error) {
	if len(names) == 0 && format == output.Text {
		return Selection{Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{
			graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_MESSAGES,
			graphdv1.Channel_CHANNEL_CUSTOM, graphdv1.Channel_CHANNEL_TASKS,
		}}}, nil
	}
	filter, err := argument.ParseFilter(names)
	return Selection{Filter: filter, showsTasks: true}, err
}
