// Package schema checks values against JSON Schemas.
package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Checker checks values against JSON Schemas, draft 2020-12 unless a schema
// says otherwise. It keeps compiled schemas, reads no file and opens no
// connection. It is safe for concurrent use.
type Checker struct {
	cache *cache
}

var _ runtime.Schemas = (*Checker)(nil)

// New makes a Checker that keeps at most size compiled schemas; 0 = 1024.
func New(size int) *Checker {
	if size <= 0 {
		size = 1024
	}
	return &Checker{cache: newCache(size)}
}

// Check returns everything that is wrong with a value, each with the JSON
// pointer of its place, "" being the whole; nil when it fits. The error says
// that the schema is broken.
func (c *Checker) Check(schema, value payload.JSON) ([]runtime.Violation, error) {
	s, err := c.compiled(schema)
	if err != nil {
		return nil, err
	}
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(value)))
	if err != nil {
		return []runtime.Violation{{Description: "is not JSON: " + err.Error()}}, nil //nolint:nilerr // the value is wrong, not the schema
	}
	if found := oversized(decoded); found != nil {
		return found, nil
	}
	err = s.Validate(decoded)
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

// Fit reports in one error all that is wrong with a value.
func (c *Checker) Fit(schema, value payload.JSON) error {
	found, err := c.Check(schema, value)
	if err != nil || len(found) == 0 {
		return err
	}
	parts := make([]string, len(found))
	for i, v := range found {
		parts[i] = strings.TrimSpace(v.Field + " " + v.Description)
	}
	return errors.New(strings.Join(parts, "; "))
}

func (c *Checker) compiled(schema payload.JSON) (*jsonschema.Schema, error) {
	if s, ok := c.cache.get(schema); ok {
		return s, nil
	}
	s, err := compile(schema)
	if err != nil {
		return nil, err
	}
	c.cache.put(schema, s)
	return s, nil
}

// here is the address of a schema for references inside it.
const here = root + "local/schema"

const root = "graphd://"

func compile(schema payload.JSON) (*jsonschema.Schema, error) {
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if found := oversized(decoded); found != nil {
		return nil, errors.New(found[0].Field + " " + found[0].Description)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(closed{})
	compiler.AssertFormat()
	if err := compiler.AddResource(here, decoded); err != nil {
		return nil, plain(err)
	}
	s, err := compiler.Compile(here)
	if err != nil {
		return nil, plain(err)
	}
	return s, nil
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
