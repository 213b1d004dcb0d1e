package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePopulationHasAllKindsOfQuestions(t *testing.T) {
	p := populate(100_000)
	require.Equal(t, few, p.ana)
	require.Equal(t, few, p.incident)
	require.Equal(t, 2000, p.leads)
	require.Equal(t, 10_000, p.due)
	require.InDelta(t, 100_000/7, p.refund, 100)
	require.InDelta(t, 2000/7, p.mineRefund, 10)
	small := populate(smokeCount)
	require.Positive(t, small.mineRefund)
	require.Positive(t, small.night)
	require.Equal(t, 50, small.ana)
}

func TestNoQuestionOfTheNightIsARefund(t *testing.T) {
	const count = 20_000
	for n := range count {
		q := questionAt(n, count)
		require.False(t, q.graph == refund && len(q.groups) > 0 && q.groups[0] == night)
	}
}

func TestAQuestionIsTheInputOfItsGraph(t *testing.T) {
	require.JSONEq(t, `{"users":["ana","ben"],"groups":[],"due":null}`, question{users: []string{ana, ben}}.state())
	require.JSONEq(t, `{"users":[],"groups":["leads"],"due":60}`, question{groups: []string{leads}, due: 60}.state())
}
