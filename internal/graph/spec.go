// Package graph defines graphs: the description that people write, the checks
// that refuse a bad description, and the compiled form that the runtime walks.
//
// Nothing here runs a graph. The package knows no clock, no I/O and no
// goroutine.
package graph

import (
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Reserved node names: Start is where a run enters, End is where a branch of
// it stops. Neither may be declared.
const (
	Start = "__start__"
	End   = "__end__"
	// AllNodes stands for all nodes in a list of breakpoints.
	AllNodes = "*"
)

// Spec is a graph as its author wrote it. Compile checks it and makes a Graph.
type Spec struct {
	Name        string
	Version     string // "" = derived from the content
	Description string
	Metadata    map[string]string

	Channels []ChannelSpec
	Input    []string // keys a run may set; empty = every channel
	Output   []string // keys of the result; empty = every channel
	// Strict refuses input and update keys that are not channels instead of
	// dropping them.
	Strict        bool
	InputSchema   payload.JSON // JSON Schema of the input, "" = unchecked
	OutputSchema  payload.JSON
	ContextSchema payload.JSON

	Nodes    []NodeSpec
	Edges    []EdgeSpec
	Branches []BranchSpec

	InterruptBefore []string
	InterruptAfter  []string
	StepLimit       int           // supersteps of one run, 0 = server default
	StepTimeout     time.Duration // one superstep, 0 = none
	Defaults        PolicySpec    // for nodes that set none of their own
	// Drift holds for interrupts that say nothing themselves, of code in a worker
	// too; "" = as their reasons demand. DriftIgnore holds for all interrupts.
	Drift       string
	DriftIgnore []string
}

// ChannelSpec declares a key of the state.
type ChannelSpec struct {
	Name    string
	Reducer string       // see Reducers; "" = last
	Default payload.JSON // value before the first write, "" = none
	// Function names the function that combines the values in a worker; only with
	// the reducer "remote".
	Function string
}

// NodeSpec declares a node. Exactly one kind field is set.
type NodeSpec struct {
	Name        string
	Description string
	Metadata    map[string]string
	Reads       []string // channels the node sees; empty = every channel
	Defer       bool     // run only when nothing else is left to do
	// Destinations names the nodes that the node's own goto may choose. It is
	// for drawing and for the reachability check; nil = unknown, any.
	Destinations []string
	Policy       PolicySpec

	Function *FunctionSpec
	Expr     *ExprSpec
	Ask      *AskSpec
	Graph    *SubgraphSpec
	Remote   *RemoteSpec
}

// FunctionSpec runs a Go function that is registered in the process.
type FunctionSpec struct {
	Name string // "" = the node's name
}

// ExprSpec updates the state by CEL expressions over it.
type ExprSpec struct {
	Update []Assignment
	Goto   string // expression that yields a node name or a list of them, "" = none
}

// Assignment sets a channel to the value of an expression.
type Assignment struct {
	Channel string
	Expr    string
}

// AskSpec asks a person. All string fields but Key, Reason, ExpiryAction and
// Schema are CEL expressions over the state; in Update, `answer` is the reply.
type AskSpec struct {
	When      string // "" = always ask
	Value     string // the interrupt's payload
	Message   string // a prompt to show when nothing else is known
	Key       string // "" = matched by position
	Reason    string // "approval", "input", …
	Schema    payload.JSON
	Update    []Assignment // from the answer
	Otherwise []Assignment // when When is false
	Goto      string       // may use answer; when not asked, answer is null
	Assignees NamesSpec    // who should answer; refuses no caller
	People    *PeopleSpec  // who may answer and how many must, nil = everybody, and one
	Priority  string       // "", "low", "normal", "high", "urgent"
	Steps     []StepSpec   // what happens while a question is undecided, before the expiry
	// Undo is how long an answer can be taken back; nil = as the server says.
	Undo        *time.Duration
	TTL         time.Duration
	TTLExpr     string       // expression in place of TTL that yields a duration or null for none
	Expiry      string       // "", "fail_node", "resume_default", "cancel_run"
	Default     payload.JSON // the answer of resume_default
	DefaultExpr string       // expression in place of Default
	// Drift is the reaction to a replay that asks something else than was
	// answered: "" = as the graph says, or see Drifts. DriftIgnore names parts
	// that may differ.
	Drift       string
	DriftIgnore []string
	// Secret are JSON pointers to the parts of the question's value and of its answers that not
	// everybody sees.
	Secret []string
}

// SubgraphSpec runs another graph as a node.
type SubgraphSpec struct {
	Name        string
	Version     string
	Persistence string // "inherit" (default), "persist", "disabled"
}

// RemoteSpec runs in a worker, or on an endpoint that graphd dials.
type RemoteSpec struct {
	Endpoint string // "" = a connected worker
	TLS      bool
}

// EdgeSpec leads from every node of From together to To: several sources are
// a join that waits for all of them.
type EdgeSpec struct {
	From []string
	To   string
}

// BranchSpec is a conditional edge: it decides where to go after From. From may
// be Start. Exactly one of Cases, Expr and Router is set.
type BranchSpec struct {
	From   string
	Name   string // unique per source; "" = its position
	Cases  []CaseSpec
	Expr   string // expression that yields a key, a list of keys, or sends
	Router string // a registered function that yields the same
	// InWorker says that Router is a function of the worker that runs the
	// graph's remote nodes, not of this process.
	InWorker bool
	Paths    map[string]string // key → node; nil = keys are node names
	// Then lists the possible targets of an Expr or Router without Paths, for
	// drawing and reachability; nil = any.
	Then []string
}

// CaseSpec sends to To when When holds; cases are tried in order. An empty
// When always holds.
type CaseSpec struct {
	When string
	To   []string
}

// PolicySpec is how a node is run. Zero fields fall back to the graph's
// defaults.
type PolicySpec struct {
	Retry        []RetrySpec // the first that matches the failure is used
	Timeout      time.Duration
	IdleTimeout  time.Duration
	ErrorHandler string // node that takes over when the node has failed
}

// RetrySpec says how often and how soon a failed attempt is repeated.
type RetrySpec struct {
	MaxAttempts     int           // including the first; 0 = 3
	InitialInterval time.Duration // 0 = 500ms
	Backoff         float64       // 0 = 2
	MaxInterval     time.Duration // 0 = 128s
	NoJitter        bool          // without it up to a second is added
	On              []string      // failure types; empty = all that are not permanent
}
