package expr

import (
	"context"
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// maxConditionBytes bounds the texts of the compiled conditions that are kept. A compiled
// condition takes some 60 bytes for each byte of its text, and 6 KiB.
const (
	maxConditionBytes  = 64 << 10
	conditionBaseBytes = 100
)

// Conditions evaluates conditions over an answer: expressions that see `answer` and nothing
// else. They stand in questions that wait, so they are compiled when they are needed. It is
// safe for concurrent use.
type Conditions struct {
	compiler *Compiler

	mu       sync.Mutex
	compiled map[string]graph.Program
	bytes    int // of their texts, with conditionBaseBytes for each
}

// NewConditions returns an evaluator with the limits of options.
func NewConditions(options Options) (*Conditions, error) {
	c, err := newCompilerOf(options, cel.Variable("answer", cel.DynType))
	if err != nil {
		return nil, err
	}
	return &Conditions{compiler: c, compiled: make(map[string]graph.Program)}, nil
}

// Check reports what is wrong with a condition.
func (c *Conditions) Check(condition string) error {
	_, err := c.compileCondition(condition)
	return err
}

// Holds evaluates a condition over an answer.
func (c *Conditions) Holds(ctx context.Context, condition string, answer payload.JSON) (bool, error) {
	p, err := c.compileCondition(condition)
	if err != nil {
		return false, err
	}
	value, err := p.Eval(graph.Vars{Answer: answer, Cancelled: ctx.Done()})
	switch {
	case err != nil:
		return false, err
	case value == "true", value == "false":
		return value == "true", nil
	}
	return false, fmt.Errorf("the condition yields %s for the answer; it must yield true or false", payload.KindOf(value))
}

// compileCondition compiles a condition, unless it was compiled a while ago.
func (c *Conditions) compileCondition(condition string) (graph.Program, error) {
	c.mu.Lock()
	p := c.compiled[condition]
	c.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := c.compiler.Compile(condition)
	if err != nil {
		return nil, err
	}
	if t, ok := p.(*Program); ok && t.ResultType() != "" && t.ResultType() != "bool" {
		return nil, fmt.Errorf("a condition must be true or false; this is always of type %s", t.ResultType())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiled[condition] != nil {
		return p, nil
	}
	if c.bytes += conditionBaseBytes + len(condition); c.bytes > maxConditionBytes {
		clear(c.compiled)
		c.bytes = conditionBaseBytes + len(condition)
	}
	c.compiled[condition] = p
	return p, nil
}
