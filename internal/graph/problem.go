package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Reason classifies a Problem. The values are stable; messages are not.
type Reason string

// Reasons why a Spec is refused.
const (
	ReasonInvalidName       Reason = "INVALID_NAME"
	ReasonReservedName      Reason = "RESERVED_NAME"
	ReasonDuplicateName     Reason = "DUPLICATE_NAME"
	ReasonUnknownReducer    Reason = "UNKNOWN_REDUCER"
	ReasonUnknownChannel    Reason = "UNKNOWN_CHANNEL"
	ReasonUnknownNode       Reason = "UNKNOWN_NODE"
	ReasonUnknownFunction   Reason = "UNKNOWN_FUNCTION"
	ReasonUnknownGraph      Reason = "UNKNOWN_GRAPH"
	ReasonUnknownField      Reason = "UNKNOWN_FIELD"
	ReasonUnknownValue      Reason = "UNKNOWN_VALUE"
	ReasonInvalidDefault    Reason = "INVALID_DEFAULT"
	ReasonInvalidJSON       Reason = "INVALID_JSON"
	ReasonInvalidSchema     Reason = "INVALID_SCHEMA"
	ReasonInvalidExpression Reason = "INVALID_EXPRESSION"
	ReasonInvalidType       Reason = "INVALID_TYPE"
	ReasonInvalidSyntax     Reason = "INVALID_SYNTAX"
	ReasonOutOfRange        Reason = "OUT_OF_RANGE"
	ReasonMissing           Reason = "MISSING_FIELD"
	ReasonConflict          Reason = "CONFLICTING_FIELDS"
	ReasonInvalidEdge       Reason = "INVALID_EDGE"
	ReasonNoEntry           Reason = "NO_ENTRY"
	ReasonUnreachableNode   Reason = "UNREACHABLE_NODE"
	ReasonDeadJoin          Reason = "JOIN_NEVER_COMPLETES"
	ReasonHandlerCycle      Reason = "HANDLER_CYCLE"
	ReasonSubgraphCycle     Reason = "SUBGRAPH_CYCLE"
	ReasonLimitExceeded     Reason = "LIMIT_EXCEEDED"
	ReasonEndpointRefused   Reason = "ENDPOINT_NOT_ALLOWED"
	ReasonFeatureDisabled   Reason = "FEATURE_DISABLED"
)

// Problem is an error in a Spec.
type Problem struct {
	Path    string // where, as in the file: "nodes.analyze.ask.value", "edges[2]"
	Reason  Reason
	Message string // the error and the remedy
	Line    int    // of the file, from 1; 0 = unknown
	// Limit is the limit that the Spec exceeds, nil for other problems.
	Limit *LimitError
}

// String shows the problem on one line.
func (p Problem) String() string {
	where := p.Path
	if p.Line > 0 {
		where = strings.TrimSuffix(fmt.Sprintf("line %d: %s", p.Line, where), ": ")
	}
	if where == "" {
		return fmt.Sprintf("%s (%s)", p.Message, p.Reason)
	}
	return fmt.Sprintf("%s: %s (%s)", where, p.Message, p.Reason)
}

// BuildError lists everything that is wrong with a Spec.
type BuildError struct {
	Graph    string
	Problems []Problem
}

// Error shows all problems, one to a line.
func (e *BuildError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %q has %d problem", e.Graph, len(e.Problems))
	if len(e.Problems) != 1 {
		b.WriteByte('s')
	}
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		b.WriteString(p.String())
	}
	return b.String()
}

// problemList collects problems, so that an author sees all of them at once. Its checks need a part
// of a Spec and nothing of the graph.
type problemList struct {
	found  []Problem
	lineOf func(path string) int
}

func (p *problemList) addProblem(path string, reason Reason, format string, args ...any) {
	if len(p.found) == maxProblems {
		return
	}
	problem := Problem{Path: path, Reason: reason, Message: fmt.Sprintf(format, args...)}
	if p.lineOf != nil {
		problem.Line = p.lineOf(path)
	}
	p.found = append(p.found, problem)
}

// limitedError is an error that a limit is the cause of.
type limitedError interface {
	error
	ExceededLimit() (option string, most, need int64)
}

// addErrorProblem adds a problem, with its limit when a limit is its cause.
func (p *problemList) addErrorProblem(path string, reason Reason, format string, err error) {
	before := len(p.found)
	p.addProblem(path, reason, format, err)
	var limit limitedError
	if before == len(p.found) || !errors.As(err, &limit) {
		return
	}
	option, most, need := limit.ExceededLimit()
	p.found[before].Limit = &LimitError{Limit: option, Max: most, Needed: need}
}

// The report of a graph in which very much is wrong.
const (
	maxProblems    = 100
	maxCompared    = 200 // names that are compared with a wrong name
	maxSuggestions = 20  // problems that come with the name that would have been right
)

// addUnknown reports a name that is not among the known names, and the likely name.
func (p *problemList) addUnknown(path string, reason Reason, what, name string, known func() []string) {
	suggestion := ""
	if len(p.found) < maxSuggestions {
		suggestion = Suggest(name, known())
	}
	p.addProblem(path, reason, "unknown %s %q%s", what, name, suggestion)
}

// Suggest ends a message about an unknown name with the names that would have
// been right: "; did you mean "analyze"? known: analyze, execute".
func Suggest(name string, known []string) string {
	if len(known) == 0 {
		return "; there are none"
	}
	text := ""
	if best := closestName(name, known); best != "" {
		text = fmt.Sprintf("; did you mean %q?", best)
	}
	names := slices.Clone(known)
	slices.Sort(names)
	const shown = 20
	rest := ""
	if len(names) > shown {
		rest = fmt.Sprintf(" and %d more", len(names)-shown)
		names = names[:shown]
	}
	return text + "; known: " + strings.Join(names, ", ") + rest
}

// closestName returns the known name that is few typing errors away, or "".
func closestName(name string, known []string) string {
	best, least := "", len(name)/3+2
	for _, k := range known[:min(len(known), maxCompared)] {
		d := editDistance(strings.ToLower(name), strings.ToLower(k))
		if d < least && d < max(len(name), len(k)) { // some letter must be the same
			best, least = k, d
		}
	}
	return best
}

// editDistance counts the letters to insert, delete or change to get from a to b.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(y)]
}
