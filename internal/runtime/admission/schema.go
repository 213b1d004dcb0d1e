package admission

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// checkSchema checks a value against a JSON Schema; "" fits everything.
func checkSchema(ctx context.Context, schemas runtime.Schemas, schema, value payload.JSON, reason, field string) error {
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
