package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// selection is what of a stream is asked for and shown.
type selection struct {
	filter *graphdv1.EventFilter
	// showsTasks shows all events of tasks. Otherwise people see those that say why
	// nothing happens, and programs none.
	showsTasks bool
}

// newSelection reads names of event kinds, like "updates" and "values".
func newSelection(names []string, format Format) (selection, error) {
	if len(names) == 0 && format == Text {
		return selection{filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{
			graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_MESSAGES,
			graphdv1.Channel_CHANNEL_CUSTOM, graphdv1.Channel_CHANNEL_TASKS,
		}}}, nil
	}
	filter, err := parseFilter(names)
	return selection{filter: filter, showsTasks: true}, err
}

func parseFilter(names []string) (*graphdv1.EventFilter, error) {
	if len(names) == 0 {
		return nil, nil
	}
	f := &graphdv1.EventFilter{}
	for _, name := range names {
		c, err := parseEnum("--events", name, graphdv1.Channel_value, "CHANNEL_")
		if err != nil {
			return nil, err
		}
		f.Channels = append(f.Channels, graphdv1.Channel(c))
	}
	return f, nil
}

// parseEnum reads a word of an enum as the command line spells it: in small
// letters, without the prefix, with a dash for an underscore.
func parseEnum(flag, word string, values map[string]int32, prefix string) (int32, error) {
	name := prefix + strings.ToUpper(strings.ReplaceAll(word, "-", "_"))
	if n, ok := values[name]; ok && n != 0 {
		return n, nil
	}
	var right []string
	for _, known := range slices.Sorted(maps.Keys(values)) {
		if values[known] != 0 {
			known = strings.ToLower(strings.TrimPrefix(known, prefix))
			right = append(right, strings.ReplaceAll(known, "_", "-"))
		}
	}
	return 0, Usagef("%s %q is not one of %s", flag, word, strings.Join(right, ", "))
}

// parseBusyPolicy and parseOpenPolicy read what to do with a thread that is not
// free.
func parseBusyPolicy(word string) (graphdv1.ConcurrencyPolicy, error) {
	switch word {
	case "":
		return 0, nil
	case "cancel", "rollback":
		word += "-active"
	}
	n, err := parseEnum("--on-busy", word, graphdv1.ConcurrencyPolicy_value, "CONCURRENCY_POLICY_")
	return graphdv1.ConcurrencyPolicy(n), err
}

func parseOpenPolicy(word string) (graphdv1.OpenInterruptPolicy, error) {
	if word == "" {
		return 0, nil
	}
	n, err := parseEnum("--on-open", word, graphdv1.OpenInterruptPolicy_value, "OPEN_INTERRUPT_POLICY_")
	return graphdv1.OpenInterruptPolicy(n), err
}

func parseCoverage(word string) (graphdv1.ResumeCoverage, error) {
	if word == "" {
		return 0, nil
	}
	n, err := parseEnum("--coverage", word, graphdv1.ResumeCoverage_value, "RESUME_COVERAGE_")
	return graphdv1.ResumeCoverage(n), err
}

// parseLabels reads KEY=VALUE pairs.
func parseLabels(flag string, pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, Usagef("%s %q: want KEY=VALUE", flag, pair)
		}
		all[key] = value
	}
	return all, nil
}

// splitGraphName splits NAME@VERSION.
func splitGraphName(given string) (name, version string) {
	name, version, _ = strings.Cut(given, "@")
	return name, version
}

// formatCursor shows a position so that --from takes it.
func formatCursor(c *graphdv1.Cursor) string {
	return c.GetLogId() + ":" + strconv.FormatUint(c.GetSequence(), 10)
}

// parseCursor reads a position that formatCursor wrote.
func parseCursor(text string) (*graphdv1.Cursor, error) {
	i := strings.LastIndexByte(text, ':')
	if i > 0 {
		if n, err := strconv.ParseUint(text[i+1:], 10, 64); err == nil {
			return &graphdv1.Cursor{LogId: text[:i], Sequence: n}, nil
		}
	}
	return nil, Usagef("--from %q: want beginning, now, or a cursor LOG:SEQUENCE", text)
}
