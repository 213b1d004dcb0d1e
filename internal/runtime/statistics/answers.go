package statistics

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// maxDecisions bounds the decisions of a node that are counted by themselves.
const maxDecisions = 8

// node is a node of a graph.
type node struct {
	graph, name string
}

// answers is how the questions of one node were answered since it is counted.
type answers struct {
	since time.Time
	last  int64 // slot of the last answer

	answered, dismissed, defaulted, expired int64
	decisions                               []decisionCount
	waits                                   waits
}

type decisionCount struct {
	decision payload.JSON
	count    int64
}

// countOutcome counts an end of the wait for an answer. decision is that of the answer, ""
// for none.
func (a *answers) countOutcome(o *occurrence, decision payload.JSON) {
	a.last = max(a.last, o.slot)
	switch {
	case o.isUndone:
		a.takeAnswer(o, decision)
	case o.isAnswer():
		a.answered++
		a.waits[o.bucket]++
		if o.outcome == checkpoint.OutcomeDismissed {
			a.dismissed++
		}
		a.countDecision(decision)
	case o.outcome == checkpoint.OutcomeDefault:
		a.defaulted++
	case o.outcome == checkpoint.OutcomeExpired:
		a.expired++
	}
}

func (a *answers) countDecision(decision payload.JSON) {
	if decision == "" {
		return
	}
	at := a.findDecision(decision)
	if at < 0 {
		if len(a.decisions) == maxDecisions {
			return // counts as an answer alone
		}
		at = len(a.decisions)
		a.decisions = append(a.decisions, decisionCount{decision: payload.JSON(strings.Clone(string(decision)))})
	}
	a.decisions[at].count++
}

func (a *answers) findDecision(decision payload.JSON) int {
	return slices.IndexFunc(a.decisions, func(d decisionCount) bool { return d.decision == decision })
}

func (a *answers) takeAnswer(o *occurrence, decision payload.JSON) {
	if a.waits[o.bucket] == 0 {
		return // another server counted it
	}
	a.answered--
	a.waits[o.bucket]--
	if o.outcome == checkpoint.OutcomeDismissed && a.dismissed > 0 {
		a.dismissed--
	}
	if at := a.findDecision(decision); at >= 0 && a.decisions[at].count > 0 {
		a.decisions[at].count--
	}
}

func (a *answers) toStatistics() runtime.AnswerStatistics {
	out := runtime.AnswerStatistics{
		CountsSince: a.since, Answered: a.answered, Dismissed: a.dismissed, Defaulted: a.defaulted, Expired: a.expired,
		Waits: a.waits.summarize(),
	}
	for _, d := range a.decisions {
		if d.count > 0 {
			out.Decisions = append(out.Decisions, runtime.DecisionCount{Decision: d.decision, Count: d.count})
		}
	}
	slices.SortStableFunc(out.Decisions, func(x, y runtime.DecisionCount) int { return cmp.Compare(y.Count, x.Count) })
	return out
}
