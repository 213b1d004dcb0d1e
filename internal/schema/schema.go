// Package schema checks values against JSON Schemas.
package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

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
		return []runtime.Violation{{Description: "is not JSON: " + err.Error()}}, nil
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
const here = "graphd:schema"

func compile(schema payload.JSON) (*jsonschema.Schema, error) {
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
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
	return nil, fmt.Errorf("$ref to %q is not allowed; put the definition into $defs", url)
}

// plain takes the words of an error that help the author.
func plain(err error) error {
	var wrong *jsonschema.SchemaValidationError
	if errors.As(err, &wrong) {
		var inner *jsonschema.ValidationError
		if errors.As(wrong.Err, &inner) {
			parts := []string{}
			for _, v := range violations(inner) {
				parts = append(parts, strings.TrimSpace(v.Field+" "+v.Description))
			}
			return errors.New(strings.Join(parts, "; "))
		}
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return load.Err
	}
	return errors.New(strings.ReplaceAll(err.Error(), here, ""))
}

// violations lists the leaves of an error: the places that are really wrong.
func violations(e *jsonschema.ValidationError) []runtime.Violation {
	w := words{printer: message.NewPrinter(language.English)}
	w.collect(e)
	return w.found
}

type words struct {
	printer *message.Printer
	found   []runtime.Violation
}

func (w *words) collect(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		w.alternatives(e)
		return
	case *kind.Required:
		for _, name := range k.Missing {
			w.add(append(e.InstanceLocation[:len(e.InstanceLocation):len(e.InstanceLocation)], name), "is missing")
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			w.add(append(e.InstanceLocation[:len(e.InstanceLocation):len(e.InstanceLocation)], name), "is not allowed here")
		}
		return
	}
	if len(e.Causes) == 0 {
		w.add(e.InstanceLocation, e.ErrorKind.LocalizedString(w.printer))
		return
	}
	for _, cause := range e.Causes {
		w.collect(cause)
	}
}

// alternatives are one violation, as none of them is the one that was meant.
func (w *words) alternatives(e *jsonschema.ValidationError) {
	parts := make([]string, 0, len(e.Causes))
	for _, cause := range e.Causes {
		inner := words{printer: w.printer}
		inner.collect(cause)
		for _, v := range inner.found {
			part := v.Description
			if v.Field != pointer(e.InstanceLocation) {
				part = v.Field + " " + part
			}
			parts = append(parts, part)
		}
	}
	text := "fits none of the alternatives"
	switch k := e.ErrorKind.(type) {
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			text = "fits more than one of the alternatives"
		}
	case *kind.Not:
		text = "is what the schema excludes"
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", or ")
	}
	w.add(e.InstanceLocation, text)
}

func (w *words) add(at []string, description string) {
	w.found = append(w.found, runtime.Violation{Field: pointer(at), Description: description})
}

// pointer writes a place as a JSON pointer.
func pointer(tokens []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escape.Replace(t))
	}
	return b.String()
}

