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
	return checkSchemaOf(ctx, schemas, q.Schema, answer, q.Secret, runtime.ReasonResponseSchemaMismatch, field)
}

// checkSchema checks a value against a JSON Schema; "" fits everything.
func checkSchema(ctx context.Context, schemas runtime.Schemas, schema, value payload.JSON, reason, field string) error {
	return checkSchemaOf(ctx, schemas, schema, value, nil, reason, field)
}

// checkSchemaOf is checkSchema for a value with secret parts, of which the error repeats nothing.
func checkSchemaOf(
	ctx context.Context, schemas runtime.Schemas, schema, value payload.JSON, secret []string, reason, field string,
) error {
	if schema == "" || schemas == nil {
		return nil
	}
	if value == "" {
		value = payload.Null
	}
	wrong, err := schemas.Check(ctx, schema, value)
	if refused, ok := errors.AsType[*runtime.Error](err); ok {
		return refused.With("field", field)
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
	wrong = runtime.HideViolations(wrong, secret)
	at, more := strings.TrimPrefix(wrong[0].Field, "/"), ""
	if at == "" {
		at = field
	}
	if len(wrong) > 1 {
		more = "; and " + strconv.Itoa(len(wrong)-1) + " more"
	}
	bad := runtime.Errorf(reason, "%s: %s%s", at, wrong[0].Description, more)
	for _, w := range wrong {
		bad.Violations = append(bad.Violations, runtime.Violation{Field: field + w.Field, Description: w.Description})
	}
	return bad
}
