package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// parseGraph reads the body of a graph command:
//
//	channels a:append b n:add=0
//	ask: ask "sure?" | set b=$1          a node and its code
//	ask retry=3/10ms handler=h: …        with options: defer, reads=a,b, retry=attempts/interval,
//	                                     on=Type, timeout=1s, idle=1s, handler=node, to=x,y
//	sub = child persist                  a node that is a graph
//	START -> a -> [x,y] -> END           edges; a list fans out
//	[x,y] => z                           a join
//	a ? state.n > 3 -> x,y ; -> END      conditional cases
//	a ?? expression                      a conditional edge that yields names
//	a ?! router k=x                      one that the code of router decides, with paths
//	router: goto x                       code of a router, not a node: "router!: …"
func parseGraph(args, body []string) (*graph.Spec, map[string]string, error) {
	s := &graph.Spec{Name: args[0]}
	code := make(map[string]string)
	for _, a := range args[1:] {
		if err := parseGraphOption(s, a); err != nil {
			return nil, nil, err
		}
	}
	for _, line := range body {
		if err := parseGraphLine(s, code, strings.TrimSpace(line)); err != nil {
			return nil, nil, err
		}
	}
	return s, code, nil
}

func parseGraphOption(s *graph.Spec, option string) error {
	key, value, _ := strings.Cut(option, "=")
	var err error
	switch key {
	case "strict":
		s.Strict = true
	case "input":
		s.Input = strings.Split(value, ",")
	case "output":
		s.Output = strings.Split(value, ",")
	case "before":
		s.InterruptBefore = strings.Split(value, ",")
	case "after":
		s.InterruptAfter = strings.Split(value, ",")
	case "steps":
		s.StepLimit, err = strconv.Atoi(value)
	case "step-timeout":
		s.StepTimeout, err = time.ParseDuration(value)
	case "handler":
		s.Defaults.ErrorHandler = value
	case "drift":
		s.Drift = value
	case "ignore":
		s.DriftIgnore = strings.Split(value, ",")
	default:
		err = fmt.Errorf("unknown graph option %q", option)
	}
	return err
}

func parseGraphLine(s *graph.Spec, code map[string]string, line string) error {
	if rest, ok := strings.CutPrefix(line, "channels "); ok {
		for _, w := range splitWords(rest) {
			s.Channels = append(s.Channels, parseChannel(w))
		}
		return nil
	}
	if head, steps, ok := splitNodeLine(line); ok {
		return parseNodeLine(s, code, head, strings.TrimSpace(steps))
	}
	for _, sign := range []string{" ?? ", " ?! ", " ? ", " => ", " -> ", " = "} {
		if left, right, ok := strings.Cut(line, sign); ok {
			return parseLinkLine(s, strings.TrimSpace(left), strings.TrimSpace(sign), strings.TrimSpace(right))
		}
	}
	return fmt.Errorf("cannot read %q", line)
}

// splitNodeLine splits "name options: code"; other lines have no colon before
// their sign.
func splitNodeLine(line string) (head, steps string, ok bool) {
	head, steps, ok = strings.Cut(line, ":")
	return head, steps, ok && !strings.ContainsAny(head, "?>[\"{")
}

func parseChannel(word string) graph.ChannelSpec {
	name, rest, _ := strings.Cut(word, ":")
	reducer, value, _ := strings.Cut(rest, "=")
	return graph.ChannelSpec{Name: name, Reducer: reducer, Default: payload.JSON(value)}
}

func parseNodeLine(s *graph.Spec, code map[string]string, head, steps string) error {
	options := splitWords(head)
	if router, ok := strings.CutSuffix(options[0], "!"); ok {
		code[router] = steps
		return nil
	}
	n := graph.NodeSpec{Name: options[0], Function: &graph.FunctionSpec{}}
	code[n.Name] = steps
	err := parseNodeOptions(&n, options[1:])
	s.Nodes = append(s.Nodes, n)
	return err
}

func parseNodeOptions(n *graph.NodeSpec, options []string) error {
	var retry graph.RetrySpec
	var err error
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		switch key {
		case "defer":
			n.Defer = true
		case "reads":
			n.Reads = strings.Split(value, ",")
		case "to":
			n.Destinations = strings.Split(value, ",")
		case "handler":
			n.Policy.ErrorHandler = value
		case "timeout":
			n.Policy.Timeout, err = time.ParseDuration(value)
		case "idle":
			n.Policy.IdleTimeout, err = time.ParseDuration(value)
		case "on":
			retry.On = strings.Split(value, ",")
		case "backoff":
			retry.Backoff, err = strconv.ParseFloat(value, 64)
		case "max":
			retry.MaxInterval, err = time.ParseDuration(value)
		case "retry":
			attempts, interval, _ := strings.Cut(value, "/")
			retry.NoJitter = true
			if retry.MaxAttempts, err = strconv.Atoi(attempts); err == nil {
				retry.InitialInterval, err = time.ParseDuration(interval)
			}
		default:
			err = fmt.Errorf("unknown node option %q", o)
		}
		if err != nil {
			return err
		}
	}
	if retry.MaxAttempts > 0 {
		n.Policy.Retry = []graph.RetrySpec{retry}
	}
	return nil
}

func parseLinkLine(s *graph.Spec, left, sign, right string) error {
	switch sign {
	case "->":
		return parseChainLine(s, append([]string{left}, strings.Split(right, " -> ")...))
	case "=>":
		s.Edges = append(s.Edges, graph.EdgeSpec{From: parseList(left), To: fullNodeName(right)})
	case "?":
		b := graph.BranchSpec{From: fullNodeName(left)}
		for c := range strings.SplitSeq(right, " ; ") {
			when, to, _ := strings.Cut(" "+c, " -> ")
			b.Cases = append(b.Cases, graph.CaseSpec{When: strings.TrimSpace(when), To: parseList("[" + strings.TrimSpace(to) + "]")})
		}
		s.Branches = append(s.Branches, b)
	case "??":
		s.Branches = append(s.Branches, graph.BranchSpec{From: fullNodeName(left), Expr: right})
	case "?!":
		b := graph.BranchSpec{From: fullNodeName(left)}
		for i, w := range splitWords(right) {
			if i == 0 {
				b.Router = w
				continue
			}
			key, to, _ := strings.Cut(w, "=")
			if b.Paths == nil {
				b.Paths = make(map[string]string)
			}
			b.Paths[key] = fullNodeName(to)
		}
		s.Branches = append(s.Branches, b)
	case "=":
		w := splitWords(right)
		sub := &graph.SubgraphSpec{Name: w[0]}
		n := graph.NodeSpec{Name: "", Graph: sub}
		rest := w[1:]
		if len(rest) > 0 && !strings.Contains(rest[0], "=") {
			sub.Persistence, rest = rest[0], rest[1:]
		}
		n.Name = left
		err := parseNodeOptions(&n, rest)
		s.Nodes = append(s.Nodes, n)
		return err
	}
	return nil
}

func parseChainLine(s *graph.Spec, stops []string) error {
	for i := 1; i < len(stops); i++ {
		for _, from := range parseList(strings.TrimSpace(stops[i-1])) {
			for _, to := range parseList(strings.TrimSpace(stops[i])) {
				s.Edges = append(s.Edges, graph.EdgeSpec{From: []string{from}, To: to})
			}
		}
	}
	return nil
}

func parseList(text string) []string {
	inner, ok := strings.CutPrefix(text, "[")
	if !ok {
		return []string{fullNodeName(text)}
	}
	list := strings.Split(strings.TrimSuffix(inner, "]"), ",")
	for i := range list {
		list[i] = fullNodeName(strings.TrimSpace(list[i]))
	}
	return list
}

// fullNodeName spells the two reserved nodes as the graph package does.
func fullNodeName(name string) string {
	switch name {
	case "START":
		return graph.Start
	case "END":
		return graph.End
	default:
		return name
	}
}

// useExpressions makes nodes of kind expr of those whose code only computes or asks. The same
// code is run for them, but the engine may do so wherever it likes.
func useExpressions(s *graph.Spec, code map[string]string) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Function == nil || strings.Contains(code[n.Name], "$#") {
			continue
		}
		computes, expr := true, &graph.ExprSpec{}
		for step := range strings.SplitSeq(code[n.Name], " | ") {
			switch verb, _, _ := strings.Cut(strings.TrimSpace(step), " "); verb {
			case "set", "write", "overwrite", "return", "ask":
			case "goto", "route", "send":
				expr.Goto = "null"
			default:
				computes = false
			}
		}
		if computes {
			n.Function, n.Expr = nil, expr
		}
	}
}
