package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// ExpiryAction is the reaction to a question without an answer in time.
type ExpiryAction string

// Reactions to an expired question.
const (
	FailNode  ExpiryAction = "fail_node"
	CancelRun ExpiryAction = "cancel_run"
	// resumeDefault is chosen by [DefaultAfter].
	resumeDefault ExpiryAction = "resume_default"
)

// Drift is the reaction to a function that is run again and asks something else
// than was answered at the same place. An answer to something else is not used
// unless the program chooses [DriftAccept].
type Drift string

// Reactions to drift. A question that chooses none takes that of its graph; when
// the graph has none either it is [DriftFail] for the reasons "approval" and
// "tool_call", and [DriftAskAgain] for all others.
const (
	// DriftFail fails the task: the message shows both questions.
	DriftFail Drift = "fail"
	// DriftAskAgain asks the present question, at most three times at a place.
	// The question before is superseded and keeps its answer.
	DriftAskAgain Drift = "ask_again"
	// DriftAccept uses the answer; the question keeps the differences.
	DriftAccept Drift = "accept"
)

// AskOption adds to a question.
type AskOption func(*Question) error

// Key matches the question by its key instead of its position: the n-th use of a
// key in a scope is always the same question, independent of other questions. It
// is for code that may change while people think, and for loops.
func Key(key string) AskOption {
	return func(q *Question) error {
		if key == "" {
			return errors.New("the key of a question must not be empty; leave it out to match by position")
		}
		q.Key = key
		return nil
	}
}

// Reason classifies the question: "approval", "input", …
func Reason(reason string) AskOption {
	return func(q *Question) error {
		q.Reason = reason
		return nil
	}
}

// Message is a prompt for people, shown when nothing else is known.
func Message(text string) AskOption {
	return func(q *Question) error {
		q.Message = text
		return nil
	}
}

// People says who may answer a question, and how many must. The server refuses the answer of
// other callers. A server that does not know its callers keeps no policy that names people or
// needs several: the task fails.
type People struct {
	// Users and Groups name who may answer: a user, or a member of a group. Both empty =
	// everybody who may answer questions of the graph.
	Users  []string
	Groups []string
	// Approvals is how many people must give the same answer; 0 = 1.
	Approvals int
	// Vetoes is how many answers that do not agree decide; 0 = 1.
	Vetoes int
	// Agree is a CEL condition over `answer`, like "answer.decision != 'rejected'": whether
	// an answer agrees. "" = every answer does.
	Agree string
	// NotRequester refuses the answer of Requester.
	NotRequester bool
	Requester    string // who wants it; "" = who started the run
	// NotContributor refuses the answer of those who have edited the state since the run began.
	NotContributor bool
	// Exclusive refuses the answer of everybody but the one who has claimed the question.
	Exclusive bool
	// Delegable lets those who may answer name another user who answers in their place.
	Delegable bool
	// RevealUsers and RevealGroups name who may see the parts of [Secret]. Both empty = who may
	// answer.
	RevealUsers  []string
	RevealGroups []string
}

// ForPeople says who may answer, and how many must.
func ForPeople(people People) AskOption {
	return func(q *Question) error {
		if isNamed := people.Users != nil || people.Groups != nil; isNamed && len(people.Users)+len(people.Groups) == 0 {
			return errors.New("the people of a question are an empty list, and then every caller might answer; name at least one user or group")
		}
		q.People = &people
		return nil
	}
}

// Priority is how urgent a question is. The zero Priority is [Normal].
type Priority int

// Priorities, from the least urgent on.
const (
	Low Priority = iota - 1
	Normal
	High
	Urgent
)

// WithPriority says how urgent the question is.
func WithPriority(p Priority) AskOption {
	return func(q *Question) error {
		if p < Low || p > Urgent {
			return fmt.Errorf("%d is no priority; use Low, Normal, High or Urgent", p)
		}
		q.Priority = p
		return nil
	}
}

// Step is what happens when a question is not decided some time after it was asked: see
// [Remind] and [Escalate].
type Step struct {
	After     time.Duration
	Escalates bool
	Users     []string
	Groups    []string
	Priority  Priority // of an escalation, from then on; Normal = stays
}

// Remind is a step that reminds users and groups, or all who may answer when it names
// nobody.
func Remind(after time.Duration, users, groups []string) Step {
	return Step{After: after, Users: users, Groups: groups}
}

// Escalate is a step that lets users and groups answer as well, and may raise the priority.
func Escalate(after time.Duration, users, groups []string, p Priority) Step {
	return Step{After: after, Escalates: true, Users: users, Groups: groups, Priority: p}
}

// WithSteps says what happens while a question is undecided, in order. How the question ends say
// [ExpiresAfter] and [DefaultAfter].
func WithSteps(steps ...Step) AskOption {
	return func(q *Question) error {
		q.Steps = append(q.Steps, steps...)
		return nil
	}
}

// WithUndo says how long an answer can be taken back, at most 24 hours: the function goes on
// after that. 0 is not at all, whatever the server says.
func WithUndo(d time.Duration) AskOption {
	return func(q *Question) error {
		q.Undo = &d
		return nil
	}
}

// Secret names parts of the payload and of the answer that not everybody sees: JSON pointers
// into both, like "/card/number", or "" for the whole. Clients see {"__redacted__": true} in
// their place, and who may see them asks for them, which is recorded. The function gets the
// whole answer. Message and schema are shown as they are. A server without encryption keys
// fails the task.
func Secret(pointers ...string) AskOption {
	return func(q *Question) error {
		q.Secret = append(q.Secret, pointers...)
		return nil
	}
}

// Assignees says who should answer. It refuses no caller, see [ForPeople].
func Assignees(who ...string) AskOption {
	return func(q *Question) error {
		q.Assignees = who
		return nil
	}
}

// OnDrift chooses the reaction to a replay that asks something else.
func OnDrift(drift Drift) AskOption {
	return func(q *Question) error {
		q.Drift = drift
		return nil
	}
}

// DriftIgnore names parts of the question that may differ on replay: JSON
// pointers into its value, like "/asked_at", or "message", "schema", "value".
func DriftIgnore(parts ...string) AskOption {
	return func(q *Question) error {
		q.DriftIgnore = append(q.DriftIgnore, parts...)
		return nil
	}
}

// Schema is the JSON Schema that answers must fit: any value that encodes to a
// schema, or a json.RawMessage.
func Schema(schema any) AskOption {
	return func(q *Question) (err error) {
		if q.Schema, err = encodeJSON(schema); err != nil {
			return fmt.Errorf("the schema of a question: %w", err)
		}
		return nil
	}
}

// ofType has answers fit a type.
func ofType(t reflect.Type, isStrict bool) AskOption {
	return func(q *Question) error {
		q.Schema = answerSchema(t, isStrict)
		return nil
	}
}

// ExpiresAfter ends the wait for an answer. After [FailNode] the function gets
// an [*ExpiredError].
func ExpiresAfter(ttl time.Duration, action ExpiryAction) AskOption {
	return func(q *Question) error {
		if ttl <= 0 {
			return fmt.Errorf("a question must expire after a positive time, not %s", ttl)
		}
		if action != FailNode && action != CancelRun {
			return fmt.Errorf("unknown expiry action %q; use FailNode, CancelRun, or DefaultAfter", action)
		}
		q.TTL, q.Expiry = ttl, action
		return nil
	}
}

// DefaultAfter answers the question with a default without another answer.
func DefaultAfter(ttl time.Duration, answer any) AskOption {
	return func(q *Question) (err error) {
		if ttl <= 0 {
			return fmt.Errorf("a question must expire after a positive time, not %s", ttl)
		}
		if q.Default, err = encodeJSON(answer); err != nil {
			return fmt.Errorf("the default answer of a question: %w", err)
		}
		q.TTL, q.Expiry = ttl, resumeDefault
		return nil
	}
}

// Interrupt asks a person and returns the answer as JSON text; null, false, 0
// and "" are answers like any other. While there is none, the error is an
// [*Interrupted]; return it. The payload is any value that encodes to JSON, or a
// json.RawMessage that is sent as it is.
//
// On replay the n-th question of a scope gets the n-th answer; with Key, the n-th
// question of that key. An answer is for the question that was shown: when the
// replay asks something else there, it is not used, see OnDrift. Put values that
// may change between attempts, like prices and times, behind a [Memo].
//
// Several questions of an attempt, from several goroutines with a Scope each or
// in sequence, go out together.
func Interrupt(ctx context.Context, payload any, options ...AskOption) (json.RawMessage, error) {
	answer, _, err := askQuestion(ctx, payload, options)
	return answer, err
}

// askQuestion returns the answer to a question, and whether parts of it are secret.
func askQuestion(ctx context.Context, payload any, options []AskOption) (answer json.RawMessage, hasSecrets bool, err error) {
	b, err := boundTask(ctx)
	if err != nil {
		return nil, false, err
	}
	q := Question{Scope: scopeOf(ctx)}
	if q.Value, err = encodeJSON(payload); err != nil {
		return nil, false, Permanent(fmt.Errorf("the payload of a question: %w", err))
	}
	for _, option := range options {
		if err := option(&q); err != nil {
			return nil, false, Permanent(err)
		}
	}
	answer, err = b.task.Ask(ctx, q)
	return answer, len(q.Secret) > 0, err
}

// Ask is Interrupt with the answer decoded into a T. Without a [Schema] of its own
// the question has that of T if it is a boolean, a number, a string, a struct or a
// map: another answer, and null, is refused where it is given. Fields that a
// struct has not are dropped, see [Strict]. Of another T the answer null leaves
// the zero T.
func Ask[T any](ctx context.Context, payload any, options ...AskOption) (T, error) {
	var answer T
	text, hasSecrets, err := askQuestion(ctx, payload, append([]AskOption{ofType(reflect.TypeFor[T](), isStrict(ctx))}, options...))
	if err != nil {
		return answer, err
	}
	if err := decodeAnswer(ctx, text, &answer); err != nil {
		if hasSecrets { // the error of the decoder may repeat them as well
			return answer, OfType("AnswerMismatch", Permanent(fmt.Errorf("the answer, which has secret parts, is no %T", answer)))
		}
		return answer, OfType("AnswerMismatch", Permanent(fmt.Errorf("the answer %.120s: %w", text, err)))
	}
	return answer, nil
}
