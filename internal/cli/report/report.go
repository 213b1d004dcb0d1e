package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/shell"
	"github.com/graphd-dev/graphd/internal/visible"
)

// Report is an error as it is shown to people and programs.
type Report struct {
	Code       string            `json:"code"`
	Reason     string            `json:"reason,omitempty"`
	Message    string            `json:"message"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Violations []violation       `json:"violations,omitempty"`
	Hint       string            `json:"hint,omitempty"`

	receivedViolations int // number of violations that came with the error
}

type violation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

// NewStatusReport reads the status of a call; nil when err has none.
func NewStatusReport(err error) *Report {
	var carrier interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &carrier) {
		return nil
	}
	st := carrier.GRPCStatus()
	r := &Report{Code: codeName(st.Code()), Message: st.Message()}
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			r.Reason, r.Metadata = d.GetReason(), d.GetMetadata()
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				r.Violations = append(r.Violations, violation{v.GetField(), v.GetDescription()})
			}
		}
	}
	return r
}

// limitOption returns the option of the server that sets the exceeded limit, ""
// when the error names none, or a limit of a tenant or caller.
func (r *Report) limitOption() string {
	if r.Metadata["of"] != "" {
		return ""
	}
	name := cmp.Or(r.Metadata["option"], r.Metadata["limit"])
	if name == "" || strings.Trim(name, "0123456789") == "" {
		return "" // older reasons have the value in limit, not the name
	}
	return "--" + name
}

// reasonWithLimit returns the reason, with the option of the limit.
func (r *Report) reasonWithLimit() string {
	if option := r.limitOption(); option != "" {
		return r.Reason + ", " + option
	}
	return r.Reason
}

// Reason returns the reason of a refused call, "" for any other error.
func Reason(err error) string {
	if r := NewStatusReport(err); r != nil {
		return r.Reason
	}
	return ""
}

// codeName spells a code as the protocol page does: INVALID_ARGUMENT.
func codeName(c codes.Code) string {
	if c == codes.Canceled {
		return "CANCELLED"
	}
	var b strings.Builder
	for i, r := range c.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// IsUnreachable reports whether no server answered.
func IsUnreachable(err error) bool {
	return status.Code(err) == codes.Unavailable && Reason(err) == ""
}

// PrintError prints an error and the next command, for a person or, in a format for
// programs, for a program. self is the command line to call graphd again.
func PrintError(w io.Writer, err error, format output.Format, target string, self shell.Invocation) {
	var ended *exit.StatusError
	if err == nil || errors.As(err, &ended) {
		return
	}
	r := NewStatusReport(err)
	if r == nil {
		r = newLocalReport(err)
	} else {
		r.Hint = hintFor(r, IsUnreachable(err), target, self)
		if hinted, ok := errors.AsType[*exit.HintError](err); ok {
			r.Hint = hinted.Hint
		}
		if IsUnreachable(err) {
			r.Message = fmt.Sprintf("no answer from %s: %s", target, connectionCause(r.Message))
		}
	}
	if format == output.JSON || format == output.JSONL {
		if text, failed := json.Marshal(map[string]*Report{"error": r}); failed == nil {
			_ = output.WriteJSON(w, text) // an error has no other place to go
			return
		}
	}
	r.PrintReport(w)
}

func newLocalReport(err error) *Report {
	r := &Report{Code: "ERROR", Message: err.Error()}
	if usage, ok := errors.AsType[*exit.UsageError](err); ok {
		r.Code, r.Hint = "USAGE", usage.Hint
	}
	if hinted, ok := errors.AsType[*exit.HintError](err); ok {
		r.Hint = hinted.Hint
	}
	return r
}

// PrintReport prints the error and the next command for a person.
func (r *Report) PrintReport(w io.Writer) {
	p := output.NewPrinter(w)
	r.dropRepeatedProblem()
	if r.Reason != "" {
		p.PrintLine("error: %s: %s", r.Reason, r.messageText())
	} else {
		p.PrintLine("error: %s", r.messageText())
	}
	for _, v := range r.Violations {
		if v.Field == "" {
			p.PrintLine("  %s", v.Description)
			continue
		}
		p.PrintLine("  %s: %s", v.Field, v.Description)
	}
	if all, err := strconv.Atoi(r.Metadata["violations"]); err == nil && len(r.Violations) > 0 && all > r.receivedViolations {
		p.PrintLine("  and %d more", all-r.receivedViolations)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		if key != "violations" && r.Metadata[key] != "" {
			p.PrintLine("  %s: %s", key, r.Metadata[key])
		}
	}
	if r.Hint != "" {
		p.PrintLine("hint: %s", indentLines(r.Hint))
	}
}

// dropRepeatedProblem drops a violation that the message repeats: a message ends
// with the first problem, for callers who read nothing else.
func (r *Report) dropRepeatedProblem() {
	r.receivedViolations = len(r.Violations)
	if r.receivedViolations == 0 {
		return
	}
	first, long := strings.CutSuffix(r.Violations[0].Description, "…")
	if line, text, found := strings.Cut(first, ": "); found && fileLinePattern.MatchString(line) {
		first = text // in the message the field is between the two
	}
	ends := strings.HasSuffix(r.Message, first) ||
		long && strings.Contains(r.Message, first) // a long description is cut earlier than the message
	switch before, _, several := strings.Cut(r.Message, ", the first: "); {
	case ends && several:
		r.Message = before
	case ends && (r.receivedViolations == 1 || r.Message == r.Violations[0].Field+": "+r.Violations[0].Description):
		r.Violations = r.Violations[1:]
	}
}

var fileLinePattern = regexp.MustCompile(`^line [0-9]+$`)

// messageText returns the message. Only graphd's own messages keep their lines.
func (r *Report) messageText() output.SafeText {
	if r.Code == "ERROR" || r.Code == "USAGE" {
		return indentLines(r.Message)
	}
	return output.MakeSafe(r.Message)
}

// indentLines returns a text of several lines, indented so that none looks like
// graphd's own.
func indentLines(s string) output.SafeText {
	lines := strings.Split(visible.Lines(s), "\n")
	for i, line := range lines {
		if i > 0 && !strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		}
	}
	return output.SafeText(strings.Join(lines, "\n"))
}

// connectionCause returns the cause in gRPC's message for a failed connection.
func connectionCause(message string) string {
	if _, after, ok := strings.Cut(message, `desc = "`); ok {
		message = strings.TrimSuffix(after, `"`)
	}
	return strings.TrimPrefix(strings.TrimPrefix(message, "connection error: "), "transport: Error while dialing: ")
}

// interruptedHint returns a remedy for open questions that block a command.
func interruptedHint(inbox, verb string) string {
	text := "see the question with " + inbox + " and answer it with resume"
	switch verb {
	case "run":
		return text + ", or replace it with --on-open discard"
	case "update":
		return text + ", or drop it with --supersede"
	}
	return text
}

// busyHint returns a remedy for an active run that blocks a command.
func busyHint(watch, cancel, verb string) string {
	text := "follow the active run with " + watch
	switch verb {
	case "run":
		return text + ", or choose --on-busy enqueue|cancel|rollback"
	case "threads delete":
		return "stop the active run with " + cancel + ", or delete the thread all the same with --force"
	}
	return text + ", or stop it with " + cancel
}

// hintFor returns the command that helps.
func hintFor(r *Report, unreachable bool, target string, self shell.Invocation) string {
	if unreachable {
		return fmt.Sprintf("start a server with `%s serve --listen %s`, or name another with --server",
			shell.QuoteCommand(self.Program...), target)
	}
	thread := r.Metadata["threadId"]
	cmd := func(args ...string) string {
		return "`" + self.CommandLine(args...) + "`"
	}
	switch r.Reason {
	case "THREAD_INTERRUPTED":
		return interruptedHint(cmd("inbox", "--thread", thread), self.Verb)
	case "RESPONSE_AMBIGUOUS", "RESPONSES_INCOMPLETE":
		if r.Metadata["count"] == "1" {
			return fmt.Sprintf("one question is open, see %s; answer it: --value JSON", cmd("inbox", "--thread", thread))
		}
		return fmt.Sprintf("several questions are open, see %s; answer by id: --answer ID=JSON", cmd("inbox", "--thread", thread))
	case "RESPONSE_SCHEMA_MISMATCH":
		return fmt.Sprintf("the question is still open; %s shows what it expects", cmd("inbox", "--thread", thread))
	case "THREAD_NOT_INTERRUPTED", "NOTHING_TO_DO":
		return fmt.Sprintf("nothing waits for an answer; %s shows the last question, and %s where the thread stands",
			cmd("inbox", "show", thread), cmd("state", thread))
	case "INTERRUPT_ALREADY_RESOLVED":
		if r.Metadata["supersededBy"] == "" {
			return fmt.Sprintf("%s shows what became of it", cmd("inbox", "--thread", thread, "--filter", `state = "*"`))
		}
		return fmt.Sprintf("%s lists what is open", cmd("inbox", "--thread", thread))
	case "INTERRUPT_NOT_FOUND", "INTERRUPT_EXPIRED":
		return fmt.Sprintf("%s lists what is open", cmd("inbox", "--thread", thread))
	case "OUTCOME_UNKNOWN":
		return "give the call an id with --request-id, and repeat it with the same one until it is answered; without one see what was done first: " +
			cmd("state", cmp.Or(thread, "THREAD"))
	case "THREAD_BUSY":
		return busyHint(cmd("watch", thread), cmd("cancel", thread), self.Verb)
	case "THREAD_NOT_FOUND", "RUN_NOT_FOUND":
		return cmd("threads") + " lists the threads"
	case "GRAPH_NOT_FOUND":
		return cmd("graph", "list") + " lists the graphs"
	case "GRAPH_VERSION_UNAVAILABLE":
		if thread == "" {
			return cmd("graph", "list", "-o", "json") + " lists the versions"
		}
		return fmt.Sprintf("move the thread to another version with %s; a deleted one comes back with %s",
			cmd("run", r.Metadata["graph"]+"@VERSION", "--thread", thread), cmd("graph", "put", "FILE"))
	case "GRAPH_IN_USE":
		if r.Metadata["threads"] != "" {
			return fmt.Sprintf("%s shows which version each thread has; --force deletes it all the same",
				cmd("threads", "--filter", `graph = "`+r.Metadata["graph"]+`"`))
		}
	case "CHECKPOINT_NOT_FOUND", "CHECKPOINT_CONFLICT":
		if thread != "" {
			return cmd("history", thread) + " lists the checkpoints"
		}
	case "CURSOR_TRIMMED", "CURSOR_AHEAD", "CURSOR_LOST", "INVALID_CURSOR":
		return cmd("watch", thread, "--snapshot") + " begins with the present state"
	}
	return limitHint(r)
}

// limitHint says where the exceeded limit is set, "" = the error names none.
func limitHint(r *Report) string {
	if of := r.Metadata["of"]; of != "" {
		return "the limit of the " + of + " stands in the file that the server has as --quotas"
	}
	if option := r.limitOption(); option != "" {
		return "the limit is an option of the server: " + option
	}
	return ""
}

// ExplainReconnect returns why a stream is opened again.
func ExplainReconnect(err error) string {
	r := NewStatusReport(err)
	switch {
	case r == nil:
		return fmt.Sprintf("the connection broke (%v); looking for the server again", err)
	case r.Reason == "STORE_UNAVAILABLE":
		return "the server's store does not answer (STORE_UNAVAILABLE); trying again"
	case r.Reason == "STORE_BUSY":
		return "the server's store has more changes to write than it can (STORE_BUSY); trying again"
	case r.Reason == "TOO_MANY_RUNS", r.Reason == "TOO_MANY_SUBSCRIBERS", r.Reason == "TOO_MANY_REQUESTS":
		return fmt.Sprintf("the server is full (%s); trying again", r.reasonWithLimit())
	case r.Reason == "OUTCOME_UNKNOWN":
		return "the store did not say what became of the call (OUTCOME_UNKNOWN); asking again with the same request id"
	case r.Reason == "KEYS_UNAVAILABLE":
		return "the server lacks the keys of the token's issuer (KEYS_UNAVAILABLE); trying again"
	case r.Reason != "":
		return fmt.Sprintf("the stream ended (%s); looking for the server again", r.reasonWithLimit())
	}
	return fmt.Sprintf("the connection broke (%s); looking for the server again", r.Code)
}
