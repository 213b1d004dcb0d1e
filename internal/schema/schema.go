// Package schema checks values against JSON Schemas.
package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Checker checks values against JSON Schemas, draft 2020-12 unless a schema
// says otherwise. It keeps compiled schemas, reads no file and opens no
// connection. What a check can cost is known before it begins, so that none
// has to be stopped. It is safe for concurrent use.
type Checker struct {
	limits Limits
	cache  *cache
	// dear is taken by checks that need much memory for what they find.
	dear chan struct{}
}

var _ runtime.Schemas = (*Checker)(nil)

// New makes a Checker.
func New(limits Limits) *Checker {
	limits = limits.orDefaults()
	return &Checker{limits: limits, cache: newCache(limits.CacheBytes), dear: make(chan struct{}, maxDear)}
}

const (
	maxDear = 2 // dear checks at the same time
	// dearSteps are some 10 ms, and 10 MB if all that is wrong is listed.
	dearSteps = 200_000
)

// Check returns what is wrong with a value, each with the JSON pointer of its
// place, "" being the whole; nil when it fits. The error says that the schema
// is broken or, a *runtime.Error, that the check is beyond a limit, or why ctx
// ended while a dear check waited for others.
func (c *Checker) Check(ctx context.Context, schema, value payload.JSON) ([]runtime.Violation, error) {
	return c.check(schema, value, func() (func(), error) { return c.enter(ctx) })
}

// enter waits until a dear check may begin, and returns what ends it.
func (c *Checker) enter(ctx context.Context) (leave func(), err error) {
	select {
	case c.dear <- struct{}{}:
		return func() { <-c.dear }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// check is Check; enter is called before a dear check.
func (c *Checker) check(schema, value payload.JSON, enter func() (leave func(), err error)) ([]runtime.Violation, error) {
	s, err := c.compiled(schema)
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return nil, limit.refusal()
	}
	if err != nil {
		return nil, err
	}
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(value)))
	if err != nil {
		return []runtime.Violation{{Description: "is not JSON: " + err.Error()}}, nil
	}
	if found := oversized(decoded); found != nil {
		return found, nil
	}
	steps := s.plan.cost(decoded, len(value), c.limits.Steps)
	switch {
	case steps > c.limits.Steps:
		limit := &LimitError{Limit: limitSteps, Max: c.limits.Steps, Got: steps, What: "checking the value could take more steps than are allowed"}
		return nil, limit.refusal()
	case steps > dearSteps:
		leave, err := enter()
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	return validate(s.schema, decoded)
}

func validate(s *jsonschema.Schema, value any) ([]runtime.Violation, error) {
	err := s.Validate(value)
	if err == nil {
		return nil, nil
	}
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &wrong) {
		return nil, fmt.Errorf("checking the schema: %w", err)
	}
	return violations(wrong), nil
}

// Compile reports what is wrong with a schema.
func (c *Checker) Compile(schema payload.JSON) error {
	_, err := c.compiled(schema)
	return err
}

// Fit reports in one error all that is wrong with a value. It never waits: its
// callers compile graphs, and bound how many they compile at the same time.
func (c *Checker) Fit(schema, value payload.JSON) error {
	found, err := c.check(schema, value, func() (func(), error) { return func() {}, nil })
	if err != nil || len(found) == 0 {
		return err
	}
	parts := make([]string, len(found))
	for i, v := range found {
		parts[i] = strings.TrimSpace(v.Field + " " + v.Description)
	}
	return errors.New(strings.Join(parts, "; "))
}

func (c *Checker) compiled(schema payload.JSON) (*compiled, error) {
	if s, ok := c.cache.get(schema); ok {
		return s, nil
	}
	s, err := compile(schema, c.limits)
	if err != nil {
		return nil, err
	}
	c.cache.put(schema, s)
	return s, nil
}

// here is the address of a schema for references inside it.
const here = root + "local/schema"

const root = "graphd://"

func compile(schema payload.JSON, limits Limits) (*compiled, error) {
	if len(schema) > limits.Bytes {
		return nil, &LimitError{Limit: limitBytes, Max: limits.Bytes, Got: len(schema), What: fmt.Sprintf("the schema has %d bytes", len(schema))}
	}
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if found := oversized(decoded); found != nil {
		return nil, errors.New(found[0].Field + " " + found[0].Description)
	}
	if err := checkShape(decoded, limits); err != nil {
		return nil, err
	}
	s, err := link(decoded)
	if err != nil {
		return nil, plain(err)
	}
	p, err := newPlan(s, limits)
	if err != nil {
		return nil, plain(err)
	}
	return &compiled{schema: s, plan: p, bytes: footprint(schema, p)}, nil
}

// link resolves what a schema refers to.
func link(document any) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(closed{})
	p := &patterns{}
	compiler.UseRegexpEngine(p.compile)
	compiler.AssertFormat()
	if err := compiler.AddResource(here, document); err != nil {
		return nil, err
	}
	s, err := compiler.Compile(here)
	if p.refused != nil {
		return nil, p.refused
	}
	p.linked.Store(true)
	return s, err
}

// footprint is about what a compiled schema takes in memory, as measured.
func footprint(text payload.JSON, p *plan) int {
	return 12*len(text) + 1600*len(p.nodes) + 60*p.size
}

// closed refuses references out of the schema: checking must not depend on
// what a network or a disk holds today.
type closed struct{}

// Load refuses.
func (closed) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %q is not allowed; put the definition into $defs", strings.TrimPrefix(url, root+"local/"))
}

// plain takes the words of an error that help the author.
func plain(err error) error {
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return limit
	}
	if wrong, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if inner, ok := errors.AsType[*jsonschema.ValidationError](wrong.Err); ok {
			parts := []string{}
			for _, v := range violations(inner) {
				parts = append(parts, strings.TrimSpace(v.Field+" "+v.Description))
			}
			return errors.New(strings.Join(parts, "; "))
		}
	}
	if load, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return load.Err
	}
	return errors.New(strings.ReplaceAll(err.Error(), here, ""))
}
