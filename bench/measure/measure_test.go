package measure_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/workload"
)

func TestSpread(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   measure.Spread
	}{
		"nothing": {nil, measure.Spread{}},
		"one":     {[]float64{3}, measure.Spread{Median: 3, Min: 3, Max: 3, Rounds: 1}},
		"odd":     {[]float64{9, 1, 4}, measure.Spread{Median: 4, Min: 1, Max: 9, Rounds: 3}},
		"even":    {[]float64{9, 1, 4, 6}, measure.Spread{Median: 5, Min: 1, Max: 9, Rounds: 4}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, measure.Of(c.values)) })
	}
}

func TestRatiosAreThoseOfSingleRounds(t *testing.T) {
	k := measure.Key{Workload: "W1", Who: "graphd"}
	s := measure.Series{
		k:             {{Rate: 10}, {Rate: 100}, {Rate: 6}},
		k.As("limit"): {{Rate: 20}, {Rate: 400}, {Rate: 8}},
		k.As("zero"):  {{}, {}, {Rate: 2}},
	}
	require.Equal(t, measure.Spread{Median: 0.5, Min: 0.25, Max: 0.75, Rounds: 3}, s.Ratio(k, k.As("limit")))
	require.Equal(t, measure.Spread{Median: 3, Min: 3, Max: 3, Rounds: 1}, s.Ratio(k, k.As("zero")), "nothing has no ratio")
	require.Zero(t, s.Ratio(k, k.As("absent")).Rounds)

	p99 := func(w workload.Sample) float64 { return w.P99 }
	s = measure.Series{k: {{Rate: 1, P99: 3}, {Rate: 1}, {P99: 8}}, k.As("limit"): {{P99: 2}, {Rate: 1, P99: 5}, {P99: 2}}}
	require.Equal(t, measure.Spread{Median: 2.75, Min: 1.5, Max: 4, Rounds: 2}, s.Compare(k, k.As("limit"), p99))
}

func TestRoundsTakeAllContestantsInTurn(t *testing.T) {
	var order []string
	cell := func(who string) measure.Cell {
		return measure.Cell{Key: measure.Key{Who: who}, Take: func(context.Context) (workload.Sample, error) {
			order = append(order, who)
			return workload.Sample{Rate: 1}, nil
		}}
	}
	groups := [][]measure.Cell{{cell("a"), cell("b")}, {cell("c")}}
	s := measure.Series{}
	for round := range 2 {
		require.NoError(t, s.Round(t.Context(), round, groups))
	}
	require.Equal(t, []string{"a", "b", "c", "b", "a", "c"}, order)
	require.Len(t, s[measure.Key{Who: "c"}], 2)
}

func TestABrokenContestantIsNamed(t *testing.T) {
	broken := errors.New("an event is missing")
	key := measure.Key{Workload: "W1", Store: "memory", Clients: 64, Who: "graphd"}
	s := measure.Series{}
	err := s.Round(t.Context(), 0, [][]measure.Cell{{
		{Key: key, Take: func(context.Context) (workload.Sample, error) { return workload.Sample{Rate: 9}, broken }},
		{Key: key.As("limit"), Take: func(context.Context) (workload.Sample, error) { return workload.Sample{Rate: 1}, nil }},
	}})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "W1, memory, 64 clients, graphd")
	require.Zero(t, s.Rate(key).Rounds, "what is broken has no rate")
	require.Equal(t, 1, s.Rate(key.As("limit")).Rounds, "the others are measured all the same")
	require.Zero(t, s.Ratio(key, key.As("limit")).Rounds)
}
