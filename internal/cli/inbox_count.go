package cli

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// maxCounted is how many conditions a server counts for a caller who may see only some
// questions.
const maxCounted = 4

// describeCount says how many questions are shown, and of how many.
func (s *Session) describeCount(ctx context.Context, shown int, more bool, filter string, query argument.QuestionQuery) string {
	what := " open question"
	if filter != "" {
		what = " question" // a filter may name other states
	}
	if !more {
		return output.FormatCount(shown) + what + plural(shown)
	}
	count := s.countQuestions(ctx, filter, query)
	total := int(count.GetCount())
	text := output.FormatCount(total) + what + plural(total)
	switch precision := count.GetPrecision(); {
	case precision == graphdv1.CountInterruptsResponse_PRECISION_AT_MOST && total > shown:
		return output.FormatCount(shown) + " of at most " + text
	case precision == graphdv1.CountInterruptsResponse_PRECISION_AT_LEAST && total > shown:
		return output.FormatCount(shown) + " of at least " + text
	case precision == graphdv1.CountInterruptsResponse_PRECISION_EXACT && total > shown:
		return output.FormatCount(shown) + " of " + text
	}
	return output.FormatCount(shown) + what + plural(shown) + "; there may be more"
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// countQuestions counts the questions that a query finds. It returns nil when nothing is
// known: a list is worth showing without its count.
func (s *Session) countQuestions(ctx context.Context, filter string, query argument.QuestionQuery) *graphdv1.CountInterruptsResponse_Count {
	counted, isWhole := chooseCounted(filter, query)
	if len(counted) == 0 {
		return nil
	}
	resp, err := s.Interrupts.CountInterrupts(ctx, &graphdv1.CountInterruptsRequest{Filters: counted[:min(len(counted), maxCounted)]})
	if err != nil || len(resp.GetCounts()) == 0 {
		return nil
	}
	if isWhole {
		return resp.GetCounts()[0]
	}
	return leastCount(resp.GetCounts())
}

// chooseCounted chooses what is counted, and reports whether that is all that a query asks
// for. A server counts single conditions: the rarest of several is a bound.
func chooseCounted(filter string, query argument.QuestionQuery) (counted []string, isWhole bool) {
	isWhole = query.OrderBy != argument.OrderByDue // which lists no questions that are never due
	switch {
	case filter != "" && len(query.Conditions) == 0:
		return []string{filter}, isWhole
	case len(query.Counted) > 0:
		return query.Counted, isWhole && filter == "" && len(query.Conditions) == 1
	case filter == "":
		return []string{""}, isWhole && len(query.Conditions) == 0
	}
	return nil, false
}

// leastCount returns the least of the counts that are bounds from above, nil for none.
func leastCount(counts []*graphdv1.CountInterruptsResponse_Count) *graphdv1.CountInterruptsResponse_Count {
	var least *graphdv1.CountInterruptsResponse_Count
	for _, c := range counts {
		if c.GetPrecision() == graphdv1.CountInterruptsResponse_PRECISION_AT_LEAST {
			continue
		}
		if least == nil || c.GetCount() < least.GetCount() {
			least = &graphdv1.CountInterruptsResponse_Count{Count: c.GetCount(), Precision: graphdv1.CountInterruptsResponse_PRECISION_AT_MOST}
		}
	}
	return least
}
