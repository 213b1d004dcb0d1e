package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/graphd-dev/graphd/internal/graph"
)

// Issue is an error in an expression.
type Issue struct {
	Line    int // of the expression, from 1
	Column  int // from 1, in code points
	Message string
}

// CompileError lists everything that is wrong with an expression.
type CompileError struct {
	Source string
	Issues []Issue
}

// Error shows the issues with their places.
func (e *CompileError) Error() string {
	parts := make([]string, len(e.Issues))
	for i, issue := range e.Issues {
		parts[i] = fmt.Sprintf("%d:%d: %s", issue.Line, issue.Column, issue.Message)
	}
	return strings.Join(parts, "; ")
}

// EvalError says why an expression came to no value.
type EvalError struct {
	Source  string
	Message string
	Err     error
}

// Error tells the reason and the expression.
func (e *EvalError) Error() string {
	return fmt.Sprintf("%s, in %s", e.Message, shortenSource(e.Source))
}

// Unwrap returns the error of the expression library.
func (e *EvalError) Unwrap() error { return e.Err }

func shortenSource(source string) string {
	source = strings.Join(strings.Fields(source), " ")
	const most = 120
	if r := []rune(source); len(r) > most {
		return string(r[:most]) + "…"
	}
	return source
}

func newCompileError(source string, issues *cel.Issues) error {
	e := &CompileError{Source: source}
	for _, issue := range issues.Errors() {
		e.Issues = append(e.Issues, Issue{
			Line:    issue.Location.Line(),
			Column:  issue.Location.Column() + 1,
			Message: explainIssue(issue.Message),
		})
	}
	return e
}

// singleIssue makes a *CompileError of an error that concerns the expression as a whole.
func singleIssue(source string, err error) error {
	return &CompileError{Source: source, Issues: []Issue{{Line: 1, Column: 1, Message: err.Error()}}}
}

// explainIssue turns the library's words into words that help the author.
func explainIssue(message string) string {
	undeclared := regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	if m := undeclared.FindStringSubmatch(message); m != nil {
		known := []string{"state", "input", "answer", "context", "error", "END"}
		hint := ""
		if !strings.Contains(m[1], "@") {
			hint = graph.Suggest(m[1], known) + "; a text needs quotes of its own, like 'this'"
		}
		return fmt.Sprintf("nothing is called %q here%s", m[1], hint)
	}
	message, _, _ = strings.Cut(message, " expecting {") // a list of all tokens there are
	return strings.ReplaceAll(message, "Syntax error: ", "syntax error: ")
}

// explainError adds the names of existing keys to an evaluation error.
func (e *evaluation) explainError(source string, err error) error {
	if over := e.meter.exceeded; over != nil {
		return &EvalError{Source: source, Message: over.Error(), Err: over}
	}
	if refused := e.meter.refused; refused != nil {
		return &EvalError{Source: source, Message: refused.Error(), Err: refused}
	}
	message := err.Error()
	if key, ok := strings.CutPrefix(message, "no such key: "); ok {
		for _, miss := range slices.Backward(e.missedKeys) {
			if miss.key == key {
				message = fmt.Sprintf("%s has no key %q%s", miss.where, key, graph.Suggest(key, miss.in.listKeys()))
				break
			}
		}
	}
	return &EvalError{Source: source, Message: message, Err: err}
}
