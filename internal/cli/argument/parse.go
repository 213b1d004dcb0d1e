package argument

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// ParseFilter parses names of channels. It returns nil for none, which means the
// default of the server. The error is an *exit.UsageError.
func ParseFilter(names []string) (*graphdv1.EventFilter, error) {
	if len(names) == 0 {
		return nil, nil
	}
	f := &graphdv1.EventFilter{}
	for _, name := range names {
		c, err := ParseEnum("--events", name, graphdv1.Channel_value, "CHANNEL_")
		if err != nil {
			return nil, err
		}
		f.Channels = append(f.Channels, graphdv1.Channel(c))
	}
	return f, nil
}

// ParseEnum parses an enum value as the command line spells it: in small letters,
// without the prefix, with a dash for an underscore. The error is an
// exit.UsageError.
func ParseEnum(flag, word string, values map[string]int32, prefix string) (int32, error) {
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
	return 0, exit.Usagef("%s %q is not one of %s", flag, word, strings.Join(right, ", "))
}

// ParseBusyPolicy parses the policy for a thread that is not free. The error is an
// *exit.UsageError.
func ParseBusyPolicy(word string) (graphdv1.ConcurrencyPolicy, error) {
	switch word {
	case "":
		return 0, nil
	case "cancel", "rollback":
		word += "-active"
	}
	n, err := ParseEnum("--on-busy", word, graphdv1.ConcurrencyPolicy_value, "CONCURRENCY_POLICY_")
	return graphdv1.ConcurrencyPolicy(n), err
}

// ParseOpenPolicy parses the policy for open questions. The error is an
// *exit.UsageError.
func ParseOpenPolicy(word string) (graphdv1.OpenInterruptPolicy, error) {
	if word == "" {
		return 0, nil
	}
	n, err := ParseEnum("--on-open", word, graphdv1.OpenInterruptPolicy_value, "OPEN_INTERRUPT_POLICY_")
	return graphdv1.OpenInterruptPolicy(n), err
}

// ParseCoverage parses whether all open questions must be answered. The error is an
// *exit.UsageError.
func ParseCoverage(word string) (graphdv1.ResumeCoverage, error) {
	if word == "" {
		return 0, nil
	}
	n, err := ParseEnum("--coverage", word, graphdv1.ResumeCoverage_value, "RESUME_COVERAGE_")
	return graphdv1.ResumeCoverage(n), err
}

// ParseLabels parses KEY=VALUE pairs. The error is an exit.UsageError.
func ParseLabels(flag string, pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, exit.Usagef("%s %q: want KEY=VALUE", flag, pair)
		}
		all[key] = value
	}
	return all, nil
}

// SplitGraphName splits NAME@VERSION.
func SplitGraphName(given string) (name, version string) {
	name, version, _ = strings.Cut(given, "@")
	return name, version
}

// FormatCursor returns a position in the form that --from takes.
func FormatCursor(c *graphdv1.Cursor) string {
	return c.GetLogId() + ":" + strconv.FormatUint(c.GetSequence(), 10)
}

// ParseCursor parses a position that FormatCursor returned. The error is an
// *exit.UsageError.
func ParseCursor(text string) (*graphdv1.Cursor, error) {
	i := strings.LastIndexByte(text, ':')
	if i > 0 {
		if n, err := strconv.ParseUint(text[i+1:], 10, 64); err == nil {
			return &graphdv1.Cursor{LogId: text[:i], Sequence: n}, nil
		}
	}
	return nil, exit.Usagef("--from %q: want beginning, now, or a cursor LOG:SEQUENCE", text)
}
