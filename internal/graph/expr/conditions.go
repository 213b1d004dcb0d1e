package expr

import (
	"context"
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// maxConditions is how many compiled conditions are kept.
const maxConditions = 256

// Conditions evaluates conditions over an answer: expressions that see `answer` and nothing
// else. They stand in questions that wait, so they are compiled when they are needed. It is
// safe for concurrent use.
type Conditions struct {
	compiler *Compiler

	mu       sync.Mutex
	compiled map[string]graph.Program
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
	_, err := c.compile(condition)
	return err
}

// Holds evaluates a condition over an answer.
func (c *Conditions) Holds(ctx context.Context, condition string, answer payload.JSON) (bool, error) {
	p, err := c.compile(condition)
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

// compile compiles a condition, unless it was compiled a while ago.
func (c *Conditions) compile(condition string) (graph.Program, error) {
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
	if len(c.compiled) >= maxConditions {
		clear(c.compiled)
	}
	c.compiled[condition] = p
	return p, nil
}
