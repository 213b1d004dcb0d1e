package expr_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/payload"
)

func TestConditions(t *testing.T) {
	conditions, err := expr.NewConditions(expr.Options{})
	require.NoError(t, err)
	for _, c := range []struct {
		condition string
		answer    payload.JSON
		want      bool
	}{
		{"answer.decision != 'rejected'", `{"decision": "approved"}`, true},
		{"answer.decision != 'rejected'", `{"decision": "rejected"}`, false},
		{"answer", `true`, true},
		{"answer == null", `null`, true},
		{"answer > 9007199254740992", `9007199254740993`, true},
	} {
		got, err := conditions.Holds(t.Context(), c.condition, c.answer)
		require.NoError(t, err, c.condition)
		require.Equal(t, c.want, got, "%s over %s", c.condition, c.answer)
	}
}

func TestConditionsSeeOnlyTheAnswer(t *testing.T) {
	conditions, err := expr.NewConditions(expr.Options{})
	require.NoError(t, err)
	for condition, text := range map[string]string{
		"state.amount > 5":  "state",
		"context.user == 1": "context",
		"input":             "input",
		"answer +":          "",
		"'yes'":             "always of type string",
	} {
		err := conditions.Check(condition)
		require.Error(t, err, condition)
		require.Contains(t, err.Error(), text)
	}
	_, err = conditions.Holds(t.Context(), "answer", `"yes"`)
	require.ErrorContains(t, err, "must yield true or false")
	_, err = conditions.Holds(t.Context(), "answer.decision == 'yes'", `{}`)
	require.Error(t, err)
}

func TestConditionsAreKeptWithinABound(t *testing.T) {
	conditions, err := expr.NewConditions(expr.Options{})
	require.NoError(t, err)
	for n := range 2000 {
		holds, err := conditions.Holds(t.Context(), fmt.Sprintf("answer == %d", n), payload.JSON(fmt.Sprint(n)))
		require.NoError(t, err)
		require.True(t, holds)
	}
	require.LessOrEqual(t, conditions.CountCompiled(), 655)
}
