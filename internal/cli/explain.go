package cli

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

	"github.com/graphd-dev/graphd/internal/visible"
)

// refused is what a server said about a call that it refused.
type refused struct {
	Code       string            `json:"code"`
	Reason     string            `json:"reason,omitempty"`
	Message    string            `json:"message"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Violations []violation       `json:"violations,omitempty"`
	Hint       string            `json:"hint,omitempty"`

	told int // how many of the violations came with the error
}

type violation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

// refusal reads the status of a call; nil when err carries none.
func refusal(err error) *refused {
	var carrier interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &carrier) {
		return nil
	}
	st := carrier.GRPCStatus()
	r := &refused{Code: codeName(st.Code()), Message: st.Message()}
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

// option is the option of the server that sets the limit which refuses, "" when none
// is known.
func (r *refused) option() string {
	name := cmp.Or(r.Metadata["option"], r.Metadata["limit"])
	if name == "" || strings.Trim(name, "0123456789") == "" {
		return "" // in reasons that are older than the rule, limit is the value
	}
	return "--" + name
}

// cause is the reason, with the option of the limit.
func (r *refused) cause() string {
	if option := r.option(); option != "" {
		return r.Reason + ", " + option
	}
	return r.Reason
}

// Reason returns the reason of a refused call, "" when err is none.
func Reason(err error) string {
	if r := refusal(err); r != nil {
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

// unreachable reports whether nobody answered at all.
func unreachable(err error) bool {
	return status.Code(err) == codes.Unavailable && Reason(err) == ""
}

// Explain tells a person, or with a format for programs a program, what went
// wrong and what to do next. Self is how to call graphd again.
func Explain(w io.Writer, err error, format Format, target string, self Self) {
	var ended *EndedError
	if err == nil || errors.As(err, &ended) {
		return
	}
	r := refusal(err)
	if r == nil {
		r = local(err)
	} else {
		r.Hint = hint(r, unreachable(err), target, self)
		if hinted, ok := errors.AsType[*HintError](err); ok {
			r.Hint = hinted.Hint
		}
		if unreachable(err) {
			r.Message = fmt.Sprintf("no answer from %s: %s", target, cause(r.Message))
		}
	}
	if format == JSON || format == JSONL {
		if text, failed := json.Marshal(map[string]*refused{"error": r}); failed == nil {
			_ = WriteJSON(w, text) // there is no other place to say so
			return
		}
	}
	r.write(w)
}

func local(err error) *refused {
	r := &refused{Code: "ERROR", Message: err.Error()}
	if usage, ok := errors.AsType[*UsageError](err); ok {
		r.Code, r.Hint = "USAGE", usage.Hint
	}
	if hinted, ok := errors.AsType[*HintError](err); ok {
		r.Hint = hinted.Hint
	}
	return r
}

func (r *refused) write(w io.Writer) {
	p := &page{w: w}
	r.dropRepeated()
	if r.Reason != "" {
		p.line("error: %s: %s", r.Reason, r.message())
	} else {
		p.line("error: %s", r.message())
	}
	for _, v := range r.Violations {
		if v.Field == "" {
			p.line("  %s", v.Description)
			continue
		}
		p.line("  %s: %s", v.Field, v.Description)
	}
	if all, err := strconv.Atoi(r.Metadata["violations"]); err == nil && len(r.Violations) > 0 && all > r.told {
		p.line("  and %d more", all-r.told)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		if key != "violations" && r.Metadata[key] != "" {
			p.line("  %s: %s", key, r.Metadata[key])
		}
	}
	if r.Hint != "" {
		p.line("hint: %s", indented(r.Hint))
	}
}

// dropRepeated drops what is told twice: a message ends with the first problem,
// for callers who read nothing else.
func (r *refused) dropRepeated() {
	r.told = len(r.Violations)
	if r.told == 0 {
		return
	}
	first, long := strings.CutSuffix(r.Violations[0].Description, "…")
	if line, text, found := strings.Cut(first, ": "); found && lineOfFile.MatchString(line) {
		first = text // in the message the field is between the two
	}
	ends := strings.HasSuffix(r.Message, first) ||
		long && strings.Contains(r.Message, first) // a long description is cut earlier than the message
	switch before, _, several := strings.Cut(r.Message, ", the first: "); {
	case ends && several:
		r.Message = before
	case ends && (r.told == 1 || r.Message == r.Violations[0].Field+": "+r.Violations[0].Description):
		r.Violations = r.Violations[1:]
	}
}

var lineOfFile = regexp.MustCompile(`^line [0-9]+$`)

// message is what was said. Only what this program says itself has lines.
func (r *refused) message() text {
	if r.Code == "ERROR" || r.Code == "USAGE" {
		return indented(r.Message)
	}
	return plain(r.Message)
}

// indented is a text of several lines, of which none looks like one of ours.
func indented(s string) text {
	lines := strings.Split(visible.Lines(s), "\n")
	for i, line := range lines {
		if i > 0 && !strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		}
	}
	return text(strings.Join(lines, "\n"))
}

// cause takes what matters out of gRPC's words for a failed connection.
func cause(message string) string {
	if _, after, ok := strings.Cut(message, `desc = "`); ok {
		message = strings.TrimSuffix(after, `"`)
	}
	return strings.TrimPrefix(strings.TrimPrefix(message, "connection error: "), "transport: Error while dialing: ")
}

// interrupted says what to do about open questions that are in the way of a
// command.
func interrupted(inbox, verb string) string {
	text := "see the question with " + inbox + " and answer it with resume"
	switch verb {
	case "run":
		return text + ", or replace it with --on-open discard"
	case "update":
		return text + ", or drop it with --supersede"
	}
	return text
}

// busy says what to do about an active run that is in the way of a command.
func busy(watch, cancel, verb string) string {
	text := "follow the active run with " + watch
	switch verb {
	case "run":
		return text + ", or choose --on-busy enqueue|cancel|rollback"
	case "threads delete":
		return "stop the active run with " + cancel + ", or delete the thread all the same with --force"
	}
	return text + ", or stop it with " + cancel
}

// hint says which command helps.
func hint(r *refused, unreachable bool, target string, self Self) string {
	if unreachable {
		return fmt.Sprintf("start a server with `%s serve --listen %s`, or name another with --server",
			CommandLine(self.Program...), target)
	}
	thread := r.Metadata["threadId"]
	cmd := func(args ...string) string {
		return "`" + self.Command(args...) + "`"
	}
	switch r.Reason {
	case "THREAD_INTERRUPTED":
		return interrupted(cmd("inbox", "--thread", thread), self.Verb)
	case "RESPONSE_AMBIGUOUS", "RESPONSES_INCOMPLETE":
		if r.Metadata["count"] == "1" {
			return fmt.Sprintf("one question is open, see %s; answer it: --value JSON", cmd("inbox", "--thread", thread))
		}
		return fmt.Sprintf("several questions are open, see %s; answer by id: --answer ID=JSON", cmd("inbox", "--thread", thread))
	case "RESPONSE_SCHEMA_MISMATCH":
		return fmt.Sprintf("the question is still open; %s shows what it expects", cmd("inbox", "--thread", thread))
	case "THREAD_NOT_INTERRUPTED", "NOTHING_TO_DO":
		return fmt.Sprintf("nothing waits for an answer; %s shows where the thread stands", cmd("state", thread))
	case "INTERRUPT_NOT_FOUND", "INTERRUPT_ALREADY_RESOLVED", "INTERRUPT_EXPIRED":
		return fmt.Sprintf("%s lists what is open", cmd("inbox", "--thread", thread))
	case "OUTCOME_UNKNOWN":
		return "give the call an id with --request-id, and repeat it with the same one until it is answered; without one see what was done first: " +
			cmd("state", cmp.Or(thread, "THREAD"))
	case "THREAD_BUSY":
		return busy(cmd("watch", thread), cmd("cancel", thread), self.Verb)
	case "THREAD_NOT_FOUND", "RUN_NOT_FOUND":
		return cmd("threads") + " lists the threads"
	case "GRAPH_NOT_FOUND":
		return cmd("graph", "list") + " lists the graphs"
	case "CHECKPOINT_NOT_FOUND", "CHECKPOINT_CONFLICT":
		if thread != "" {
			return cmd("history", thread) + " lists the checkpoints"
		}
	case "CURSOR_TRIMMED", "CURSOR_AHEAD", "CURSOR_LOST", "INVALID_CURSOR":
		return cmd("watch", thread, "--snapshot") + " begins with the present state"
	}
	if option := r.option(); option != "" {
		return "the limit is an option of the server: " + option
	}
	return ""
}
