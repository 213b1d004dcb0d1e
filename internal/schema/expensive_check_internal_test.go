package schema

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
)

// newBusyChecker returns a Checker whose slots for expensive checks are all taken.
func newBusyChecker() *Checker {
	c := New(Limits{})
	for range maxExpensive {
		c.expensiveSlots <- struct{}{}
	}
	return c
}

// The size of a value does not determine the cost of its check.
func TestOrdinaryChecksDoNotWaitForExpensiveOnes(t *testing.T) {
	for n := range 60 {
		var properties, values []string
		for i := range n {
			properties = append(properties, fmt.Sprintf(`"k%d":{"type":"string"}`, i))
			values = append(values, fmt.Sprintf(`"k%d":"some words here"`, i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		found, err := newBusyChecker().Check(ctx, payload.JSON(`{"type":"object","properties":{`+strings.Join(properties, ",")+`}}`),
			payload.JSON("{"+strings.Join(values, ",")+"}"))
		cancel()
		require.NoError(t, err, "%d properties", n)
		require.Empty(t, found)
	}
}

func TestAnExpensiveCheckWaitsAsLongAsItsCaller(t *testing.T) {
	schema := payload.JSON(`{"items":{"type":"object","properties":{"a":{"type":"string"}}}}`)
	value := payload.JSON(`[` + strings.Repeat(`{"a":"b"},`, 50_000) + `{}]`)
	c := newBusyChecker()
	s, err := c.getCompiled(schema)
	require.NoError(t, err)
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(value)))
	require.NoError(t, err)
	steps := s.plan.countSteps(decoded, c.limits.Steps)
	require.Greater(t, steps, expensiveSteps)
	require.LessOrEqual(t, steps, c.limits.Steps)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Check(ctx, schema, value)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, c.CheckValue(schema, value), "who compiles does not wait")
	<-c.expensiveSlots
	_, err = c.Check(t.Context(), schema, value)
	require.NoError(t, err)
	require.Len(t, c.expensiveSlots, maxExpensive-1, "it leaves its place")
}
