package prompt

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/schema"
)

// Schemas checks answers that are not typed in a form.
type Schemas struct{ checker *schema.Checker }

// NewSchemas makes a checker for some questions.
func NewSchemas() *Schemas { return &Schemas{checker: schema.New(schema.Limits{})} }

// IsMisfit reports whether the schema of a question refuses an answer, "" = a dismissal. The
// server decides where it can't be told here.
func (s *Schemas) IsMisfit(ctx context.Context, q *graphdv1.Interrupt, value string) bool {
	wanted := q.GetResponseSchema().GetJson()
	if value == "" || wanted == "" {
		return false
	}
	wrong, err := s.checker.Check(ctx, payload.JSON(wanted), payload.JSON(value))
	return err == nil && len(wrong) > 0
}
