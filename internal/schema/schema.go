// Package schema checks values against JSON Schemas.
package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Checker checks values against JSON Schemas, draft 2020-12 unless a schema names
// another. It caches compiled schemas, and reads no file and opens no connection.
// It knows the cost of a check before the check begins, so that none has to be
// stopped. It is safe for concurrent use.
type Checker struct {
	limits Limits
	cache  *schemaCache
	// expensiveSlots are taken by checks that need much memory for their results.
	expensiveSlots chan struct{}
}

var _ runtime.Schemas = (*Checker)(nil)

// New makes a Checker.
func New(limits Limits) *Checker {
	limits = limits.withDefaults()
	return &Checker{limits: limits, cache: newSchemaCache(limits.CacheBytes), expensiveSlots: make(chan struct{}, maxExpensive)}
}

const (
	maxExpensive = 2 // expensive checks at the same time
	// expensiveSteps are some 10 ms, and 10 MB if all violations are listed.
	expensiveSteps = 200_000
)

// Check returns the violations of a value, each with the JSON pointer of its place,
// "" for the whole; nil when the value fits. The error reports that the schema is
// broken; it is a *runtime.Error when the check exceeds a limit, and the error of
// ctx when that ended while an expensive check waited for others.
func (c *Checker) Check(ctx context.Context, schema, value payload.JSON) ([]runtime.Violation, error) {
	return c.checkWith(schema, value, func() (func(), error) { return c.acquireSlot(ctx) })
}

// acquireSlot waits until an expensive check may begin. The caller calls leave
// after it. It returns the error of ctx when that ends first.
func (c *Checker) acquireSlot(ctx context.Context) (leave func(), err error) {
	select {
	case c.expensiveSlots <- struct{}{}:
		return func() { <-c.expensiveSlots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// checkWith is Check. It calls enter before an expensive check.
func (c *Checker) checkWith(schema, value payload.JSON, enter func() (leave func(), err error)) ([]runtime.Violation, error) {
	s, err := c.getCompiled(schema)
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return nil, limit.toRefusal()
	}
	if err != nil {
		return nil, err
	}
	decoded, err := decodeValue(value)
	if err != nil {
		return []runtime.Violation{{Description: "is not JSON: " + err.Error()}}, nil
	}
	if found := findOversizedNumbers(decoded); found != nil {
		return found, nil
	}
	steps := s.plan.boundSteps(decoded, len(value), c.limits.Steps)
	switch {
	case steps > c.limits.Steps:
		limit := &LimitError{Limit: limitSteps, Max: c.limits.Steps, Got: steps, Problem: "checking the value could take more steps than are allowed"}
		return nil, limit.toRefusal()
	case steps > expensiveSteps:
		leave, err := enter()
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	return validateValue(s.schema, decoded)
}

// decodeValue reads a value as the library wants it: numbers are json.Number.
func decodeValue(value payload.JSON) (any, error) {
	if value != "" && strings.IndexByte(`"tfn`, value[0]) >= 0 { // no number; without the buffers of a decoder
		var scalar any
		err := json.Unmarshal([]byte(value), &scalar)
		return scalar, err
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(string(value)))
}

func validateValue(s *jsonschema.Schema, value any) ([]runtime.Violation, error) {
	err := s.Validate(value)
	if err == nil {
		return nil, nil
	}
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &wrong) {
		return nil, fmt.Errorf("checking the schema: %w", err)
	}
	return listViolations(wrong), nil
}

// CheckSchema returns an error with the problem of a schema.
func (c *Checker) CheckSchema(schema payload.JSON) error {
	_, err := c.getCompiled(schema)
	return err
}

// CheckValue returns one error with all violations of a value. It never waits: its
// callers compile graphs, and bound the number that they compile at the same time.
func (c *Checker) CheckValue(schema, value payload.JSON) error {
	found, err := c.checkWith(schema, value, func() (func(), error) { return func() {}, nil })
	if err != nil || len(found) == 0 {
		return err
	}
	parts := make([]string, len(found))
	for i, v := range found {
		parts[i] = strings.TrimSpace(v.Field + " " + v.Description)
	}
	return errors.New(strings.Join(parts, "; "))
}

func (c *Checker) getCompiled(schema payload.JSON) (*compiledSchema, error) {
	if s, ok := c.cache.getSchema(schema); ok {
		return s, nil
	}
	s, err := compileSchema(schema, c.limits)
	if err != nil {
		return nil, err
	}
	c.cache.putSchema(schema, s)
	return s, nil
}

// schemaURL is the address of a schema for references inside it.
const schemaURL = rootURL + "local/schema"

const rootURL = "graphd://"

func compileSchema(schema payload.JSON, limits Limits) (*compiledSchema, error) {
	if len(schema) > limits.Bytes {
		return nil, &LimitError{Limit: limitBytes, Max: limits.Bytes, Got: len(schema), Problem: fmt.Sprintf("the schema has %d bytes", len(schema))}
	}
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if found := findOversizedNumbers(decoded); found != nil {
		return nil, errors.New(found[0].Field + " " + found[0].Description)
	}
	if err := checkShape(decoded, limits); err != nil {
		return nil, err
	}
	s, err := linkSchema(decoded)
	if err != nil {
		return nil, explainError(err)
	}
	p, err := newCostPlan(s, limits)
	if err != nil {
		return nil, explainError(err)
	}
	if _, err := validateValue(s, nil); err != nil { // no value can be checked
		return nil, err
	}
	return &compiledSchema{schema: s, plan: p, bytes: compiledBytes(schema, p)}, nil
}

// linkSchema resolves the references of a schema.
func linkSchema(document any) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(refusingLoader{})
	p := &patternCompiler{}
	compiler.UseRegexpEngine(p.compileCounted)
	compiler.AssertFormat()
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	s, err := compiler.Compile(schemaURL)
	if p.limitError != nil {
		return nil, p.limitError
	}
	p.isLinked.Store(true)
	return s, err
}

// compiledBytes estimates the memory of a compiled schema, by measurements.
func compiledBytes(text payload.JSON, p *costPlan) int {
	return 12*len(text) + 1600*len(p.nodes) + 60*p.patternSizes
}

// refusingLoader refuses references out of the schema, because a check must not
// depend on the contents of a network or a disk.
type refusingLoader struct{}

// Load returns an error for every URL.
func (refusingLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %q is not allowed; put the definition into $defs", strings.TrimPrefix(url, rootURL+"local/"))
}

// explainError returns the part of an error that helps the author.
func explainError(err error) error {
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return limit
	}
	if wrong, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if inner, ok := errors.AsType[*jsonschema.ValidationError](wrong.Err); ok {
			parts := []string{}
			for _, v := range listViolations(inner) {
				parts = append(parts, strings.TrimSpace(v.Field+" "+v.Description))
			}
			return errors.New(strings.Join(parts, "; "))
		}
	}
	if load, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return load.Err
	}
	return errors.New(strings.ReplaceAll(err.Error(), schemaURL, ""))
}
