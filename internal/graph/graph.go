package graph

import (
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Graph is the compiled form of a Spec: names resolved to positions, edges to
// channels. It is immutable and shared by every run.
type Graph struct {
	Name    string
	Version string
	Spec    *Spec

	// Channels in a fixed order: the state keys as declared, then the channels
	// that the compiler made. Node refers to their positions.
	Channels []Channel
	// Nodes in the order of declaration; Nodes[0] is the hidden start node.
	Nodes []*Node
	// SendsChannel is the position of the channel that holds pending Sends.
	SendsChannel int
	// StartChannel is the position of the channel that receives the input.
	StartChannel int
	StateKeys    []int // positions of the state keys
	InputKeys    []int // state keys a run may set
	OutputKeys   []int // state keys of the result

	// Depth is the levels of nested graphs, with this graph; Expanded is the
	// number of their nodes, each as often as it is in the graph.
	Depth, Expanded int

	InterruptBefore []string
	InterruptAfter  []string

	workerNodes      []*Node
	hasWorkerReducer bool // some channel is combined by a worker
	hasUntracked     bool // some channel is never stored
	mayCommandParent bool // code in it, or in a graph in it, may choose nodes of the graph around
	channels         map[string]int
	nodes            map[string]*Node
}

// ChannelKind is how a channel combines the values written to it.
type ChannelKind int

// Kinds of channels. The first group are reducers that a Spec may name.
const (
	Last ChannelKind = iota
	Any
	Append
	Add
	Merge
	DeepMerge
	Union
	Min
	Max
	Messages
	Ephemeral
	Untracked
	Topic
	TopicOnce // cleared by the next superstep; also the Sends
	ByWorker  // combined by a function of a worker

	// Made by the compiler.

	Trigger    // branch:to:N, cleared a superstep after it was written
	LastFinish // trigger of a deferred node
	Barrier    // join of several nodes
	BarrierFinish
	Guard // the input channel: a value per superstep, then cleared
)

// Channel is a compiled channel.
type Channel struct {
	Name       string
	Kind       ChannelKind
	Default    payload.JSON // "" = unset before the first write
	Members    []string     // Barrier: the nodes it waits for
	IsStateKey bool         // a state key, shown to people
	// Function combines the values of a HasWorkerReducer channel.
	Function string
}

// NodeKind says who runs a node's code.
type NodeKind int

// Kinds of nodes.
const (
	KindStart NodeKind = iota
	KindFunction
	KindExpr
	KindAsk
	KindGraph
	KindRemote
)

// Node is a compiled node.
type Node struct {
	Name           string
	Index          int // position in Graph.Nodes
	Kind           NodeKind
	Spec           *NodeSpec // nil for the start node
	TriggerChannel int       // position of branch:to:<name>; of __start__ for the start node
	Triggers       []int     // channels that make it due, Channel first
	Reads          []int     // state keys it sees

	Edges    []int    // positions of the trigger channels that its plain edges write
	Joins    []int    // positions of the barriers it reports to
	Branches []Branch // conditional edges, in the order of declaration

	Retry       []RetrySpec
	Timeout     time.Duration
	IdleTimeout time.Duration
	Handler     *Node // error handler, nil = none
	HandlerOnly bool  // reached only as a handler
	Metadata    map[string]string

	Update    []Program // Expr, Ask: one per assignment
	Otherwise []Program // Ask
	When      Program   // Ask, nil = always
	Value     Program   // Ask
	Message   Program   // Ask
	Key       Program   // Ask
	Assignees Program   // Ask, nil = those of the Spec
	TTL       Program   // Ask, nil = that of the Spec
	Default   Program   // Ask, nil = that of the Spec
	Users     Program   // Ask, nil = those of the Spec
	Groups    Program   // Ask, nil = those of the Spec
	Requester Program   // Ask
	Goto      Program   // Expr, Ask
	Sub       *Graph    // Graph
}

// Branch is a compiled conditional edge.
type Branch struct {
	Name   string
	Cases  []Case
	Expr   Program
	Router string
	// InWorker says that Router is a function of a worker.
	InWorker bool
	Paths    map[string]string
}

// Case is an alternative of a Branch; a nil When always holds.
type Case struct {
	When Program
	To   []string
}

// Program is a compiled expression. It is pure and safe for concurrent use.
type Program interface {
	// Eval computes the expression over the given variables. A key that the
	// expression asks for and the state lacks is an error that names it.
	Eval(vars Vars) (payload.JSON, error)
}

// Vars are the variables of an expression.
type Vars struct {
	State   StateReader  // `state`
	Answer  payload.JSON // `answer`, "" = null
	Input   payload.JSON // `input`: the value of a Send, "" = null
	Context payload.JSON // `context`, "" = null
	Failed  payload.JSON // `error`: in an error handler, "" = null
	// Cancelled is closed when the caller no longer waits; nil = it waits to the end.
	Cancelled <-chan struct{}
}

// StateReader gives the values of state keys.
type StateReader interface {
	// Lookup returns the value of a key, or false when it is unset.
	Lookup(key string) (payload.JSON, bool)
	// Keys lists the keys that are set, in a fixed order.
	Keys() []string
}

// Expressions compiles the expressions of a Spec.
type Expressions interface {
	Compile(source string) (Program, error)
}

// GraphLookup returns the graph by name and version that a subgraph node refers to.
type GraphLookup func(name, version string) (*Graph, bool)

// Node returns a node by name.
func (g *Graph) Node(name string) (*Node, bool) {
	n, ok := g.nodes[name]
	return n, ok
}

// WorkerNodes returns the nodes that workers run, without those of graphs in it. The
// caller must not change the list.
func (g *Graph) WorkerNodes() []*Node { return g.workerNodes }

// RunsInWorker reports whether a worker runs the node.
func (n *Node) RunsInWorker() bool {
	return n.Kind == KindRemote && (n.Spec == nil || n.Spec.Remote == nil || n.Spec.Remote.Endpoint == "")
}

// HasWorkerReducer reports whether workers combine the values of some channel.
func (g *Graph) HasWorkerReducer() bool { return g.hasWorkerReducer }

// HasUntracked reports whether the values of some channel are never stored.
func (g *Graph) HasUntracked() bool { return g.hasUntracked }

// ChannelIndex returns the position of a channel by name.
func (g *Graph) ChannelIndex(name string) (int, bool) {
	i, ok := g.channels[name]
	return i, ok
}
