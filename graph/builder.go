package graph

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Start is where a run enters a graph.
const Start = "__start__"

// Builder describes a graph whose nodes are Go functions. A Builder is described once, and may
// then be used by several goroutines.
//
//	orders := graph.New("orders").
//		State(Order{}).
//		Node("receive", graph.Typed(receive)).
//		Node("pay", graph.Typed(pay)).
//		Chain(graph.Start, "receive", "pay", graph.End)
//
// Mistakes are kept until [Builder.Build]; where the graph is served, it is checked as a whole. What
// is described after a mistake is checked as well.
type Builder struct {
	name        string
	description string
	channels    []channel
	nodes       []node
	edges       []edge
	routes      []route
	before      []string
	after       []string
	stepLimit   int
	isStrict    bool
	problems    []Problem
}

type channel struct {
	name     string
	reducer  string
	reduce   Reduce
	initial  any
	hasStart bool
}

type node struct {
	name   string
	run    Func
	graph  *Builder
	policy nodePolicy
}

type edge struct {
	from []string
	to   string
}

type route struct {
	from   string
	decide Func
	to     []string
}

// New begins the description of a graph.
func New(name string) *Builder { return &Builder{name: name} }

// Name returns the name of the graph.
func (b *Builder) Name() string { return b.name }

// Describe says what the graph is for, for people.
func (b *Builder) Describe(text string) *Builder {
	b.description = text
	return b
}

// Strict refuses keys that the graph does not know, in inputs of runs and in updates of nodes, and has
// its functions be [Strict]. Without it they are dropped.
func (b *Builder) Strict() *Builder {
	b.isStrict = true
	return b
}

// ChannelOption adds to a channel.
type ChannelOption func(*channel)

// Reducer combines what several nodes write by a way that the server has: "append", "add",
// "merge", "deep_merge", "union", "min", "max", "messages", and others of docs/graphs.md.
func Reducer(name string) ChannelOption { return func(c *channel) { c.reducer = name } }

// Initial is the value of a channel before the first write.
func Initial(value any) ChannelOption {
	return func(c *channel) { c.initial, c.hasStart = value, true }
}

// Channel adds a key of the state. Without an option the last write counts, and two writes in one
// superstep fail the run.
func (b *Builder) Channel(name string, options ...ChannelOption) *Builder {
	if slices.ContainsFunc(b.channels, func(c channel) bool { return c.name == name }) {
		return b.addProblem("channels."+name, "is there twice: want each channel once, as a field of a State or by Channel")
	}
	c := channel{name: name}
	for _, option := range options {
		option(&c)
	}
	b.channels = append(b.channels, c)
	return b
}

// State adds a channel for each field of a struct, by the names that JSON has for them. A tag
// graph:"append" names the reducer of the channel. A list or a map with a reducer must be left out of
// JSON where it is empty, like `json:"log,omitempty" graph:"append"`: reducers take no null.
func (b *Builder) State(of any) *Builder {
	t := reflect.TypeOf(of)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return b.addProblem("channels", "the state is a %T: want a struct", of)
	}
	for _, field := range jsonFields(t) {
		name, reducer := field.name, field.Tag.Get("graph")
		if reducer != "" && mayBeNull(field.Type) && !strings.Contains(field.options, "omit") {
			b.addProblem("channels."+name, `the field %s is null in JSON where it is empty, which the reducer %q does not take: want the tag json:"%s,omitempty"`, field.Name, reducer, name)
		}
		b.Channel(name, Reducer(reducer))
	}
	return b
}

// mayBeNull reports whether the zero value of a type is null in JSON.
func mayBeNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		return true
	default:
		return false
	}
}

// Node adds a node that runs a function.
func (b *Builder) Node(name string, run Func, options ...NodeOption) *Builder {
	if run == nil {
		b.addProblem("nodes."+name, "has no function: want one")
	}
	return b.addNode(node{name: name, run: run}, options)
}

// Subgraph adds a node that runs another graph on the channels that both have.
func (b *Builder) Subgraph(name string, g *Builder, options ...NodeOption) *Builder {
	if g == nil {
		b.addProblem("nodes."+name, "has no graph: want one of New")
	}
	return b.addNode(node{name: name, graph: g}, options)
}

func (b *Builder) addNode(n node, options []NodeOption) *Builder {
	if slices.ContainsFunc(b.nodes, func(other node) bool { return other.name == n.name }) {
		return b.addProblem("nodes."+n.name, "is there twice: want each node once")
	}
	for _, option := range options {
		option(&n.policy)
	}
	b.nodes = append(b.nodes, n)
	return b
}

// nodePolicy is how a node is run.
type nodePolicy struct {
	description  string
	reads        []string
	waits        bool
	destinations []string
	timeout      time.Duration
	idleTimeout  time.Duration
	retries      []Retry
	errorHandler string
}

// NodeOption adds to a node.
type NodeOption func(*nodePolicy)

// Description says what a node does, for people.
func Description(text string) NodeOption { return func(p *nodePolicy) { p.description = text } }

// Reads names the channels that a node sees; without it the node sees all of them.
func Reads(channels ...string) NodeOption { return func(p *nodePolicy) { p.reads = channels } }

// RunsLast lets a node wait until nothing else is left to do in its graph.
func RunsLast() NodeOption { return func(p *nodePolicy) { p.waits = true } }

// Destinations names the nodes that the Command of a node may go to, for drawings and checks.
func Destinations(nodes ...string) NodeOption {
	return func(p *nodePolicy) { p.destinations = nodes }
}

// Timeout bounds an attempt of a node.
func Timeout(d time.Duration) NodeOption { return func(p *nodePolicy) { p.timeout = d } }

// IdleTimeout bounds the time in which an attempt of a node says nothing: no event, no memo.
func IdleTimeout(d time.Duration) NodeOption { return func(p *nodePolicy) { p.idleTimeout = d } }

// OnError names the node that takes over when a node has failed. It reads the failure by [Failed].
func OnError(node string) NodeOption { return func(p *nodePolicy) { p.errorHandler = node } }

// Retry says how often and how soon a failed attempt is repeated. Zero fields have the defaults of
// the server: 3 attempts, 500 ms, a factor of 2, 128 s.
type Retry struct {
	MaxAttempts     int // including the first
	InitialInterval time.Duration
	Backoff         float64
	MaxInterval     time.Duration
	NoJitter        bool
	On              []string // types of failures, see [OfType]; none = all that are not [Permanent]
}

// Retries says how a node is repeated. The first policy that matches the failure counts.
func Retries(policies ...Retry) NodeOption { return func(p *nodePolicy) { p.retries = policies } }

// Edge leads from one node to another.
func (b *Builder) Edge(from, to string) *Builder {
	b.edges = append(b.edges, edge{[]string{from}, to})
	return b
}

// Chain leads from each of some nodes to the next one.
func (b *Builder) Chain(nodes ...string) *Builder {
	if len(nodes) < 2 {
		return b.addProblem("edges", "a chain of %d nodes leads nowhere: want two nodes or more", len(nodes))
	}
	for i, from := range nodes[:len(nodes)-1] {
		b.Edge(from, nodes[i+1])
	}
	return b
}

// Join leads from several nodes to one that waits for all of them.
func (b *Builder) Join(from []string, to string) *Builder {
	b.edges = append(b.edges, edge{slices.Clone(from), to})
	return b
}

// Route lets a function decide where to go after a node: it returns the name of a node, a [Target]
// of [To] or [Send], [End], or a list of those, which may be mixed. An empty list goes nowhere. to
// names all nodes that it may choose, and another choice fails with a [*RouteError]; none = any node.
func (b *Builder) Route(from string, decide Func, to ...string) *Builder {
	if decide == nil {
		b.addProblem(fmt.Sprintf("conditional_edges[%d]", len(b.routes)), "the route from %q has no function: want one", from)
	}
	b.routes = append(b.routes, route{from, decide, to})
	return b
}

// InterruptBefore lets runs wait before these nodes until they are resumed.
func (b *Builder) InterruptBefore(nodes ...string) *Builder {
	b.before = append(b.before, nodes...)
	return b
}

// InterruptAfter lets runs wait after these nodes until they are resumed.
func (b *Builder) InterruptAfter(nodes ...string) *Builder {
	b.after = append(b.after, nodes...)
	return b
}

// StepLimit bounds the supersteps of a run.
func (b *Builder) StepLimit(steps int) *Builder {
	b.stepLimit = steps
	return b
}

// Build returns the graph. The error has a [*DescriptionError] with all mistakes of the description,
// and of each subgraph: errors.Join joins several. The graph is then what is left of the description,
// to be checked and not to be run.
func (b *Builder) Build() (*Graph, error) { return b.buildWithin(nil) }

// buildWithin builds the graph inside others.
func (b *Builder) buildWithin(outer []*Builder) (*Graph, error) {
	g, subgraphErrors := newGraph(b, append(slices.Clone(outer), b))
	var own error
	if problems := slices.Concat(b.problems, g.problems); len(problems) > 0 {
		own = &DescriptionError{Graph: b.name, Problems: problems}
	}
	return g, joinErrors(append([]error{own}, subgraphErrors...))
}

// joinErrors joins errors; one alone stays what it is.
func joinErrors(all []error) error {
	all = slices.DeleteFunc(all, func(err error) bool { return err == nil })
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

func (b *Builder) addProblem(field, format string, arguments ...any) *Builder {
	b.problems = append(b.problems, Problem{field, fmt.Sprintf(format, arguments...)})
	return b
}
