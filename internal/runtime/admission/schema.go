package admission

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// checkResponseSchema checks an answer against the schema of its interrupt. The error repeats nothing
// of its secret parts.
func checkResponseSchema(ctx context.Context, schemas runtime.Schemas, q *checkpoint.Interrupt, answer payload.JSON, field string) error {
	value := checkedValue{schema: q.Schema, value: answer, secret: q.Secret, field: field, name: "the answer"}
	if field != "single.value" {
		value.name += " to question " + q.ID
	}
	return value.check(ctx, schemas, runtime.ReasonResponseSchemaMismatch)
}

// checkSchema checks a value against a JSON Schema; "" fits everything.
func checkSchema(ctx context.Context, schemas runtime.Schemas, schema, value payload.JSON, reason, field string) error {
	return checkedValue{schema: schema, value: value, field: field, name: field}.check(ctx, schemas, reason)
}

// checkedValue is a value of a request and what it has to satisfy.
type checkedValue struct {
	schema, value payload.JSON
	secret        []string // parts of the value of which an error repeats nothing
	field         string   // of the request
	name          string   // of the whole value, for people
}

func (v checkedValue) check(ctx context.Context, schemas runtime.Schemas, reason string) error {
	if v.schema == "" || schemas == nil {
		return nil
	}
	value := v.value
	if value == "" {
		value = payload.Null
	}
	wrong, err := schemas.Check(ctx, v.schema, value)
	if refused, ok := errors.AsType[*runtime.Error](err); ok {
		return refused.With("field", v.field)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return runtime.Errorf(runtime.ReasonInternal, "a schema of the graph is broken").WithCause(err)
	}
	if len(wrong) == 0 {
		return nil
	}
	wrong = runtime.HideViolations(wrong, v.secret)
	at, more := strings.TrimPrefix(wrong[0].Field, "/"), ""
	if at == "" {
		at = v.name
	}
	if len(wrong) > 1 {
		more = "; and " + strconv.Itoa(len(wrong)-1) + " more"
	}
	bad := runtime.Errorf(reason, "%s: %s%s", at, wrong[0].Description, more)
	for _, w := range wrong {
		bad.Violations = append(bad.Violations, runtime.Violation{Field: v.field + w.Field, Description: w.Description})
	}
	return bad
}
