package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/report"
)

func TestAMarkSaysWhetherTheMedianReachedTheGoal(t *testing.T) {
	for name, c := range map[string]struct {
		median, bound float64
		atMost        bool
		want          string
	}{
		"more than the least":   {1.2, 1, false, "✓"},
		"exactly the least":     {1, 1, false, "✓"},
		"less than the least":   {0.99, 1, false, "✗"},
		"less than the most":    {0.5, 1, true, "✓"},
		"exactly the most":      {1, 1, true, "✓"},
		"exactly nothing":       {0, 0, true, "✓"},
		"more than the most":    {1.01, 1, true, "✗"},
		"more than nothing":     {1, 0, true, "✗"},
		"infinitely many times": {1e9, 15, false, "✓"},
	} {
		t.Run(name, func(t *testing.T) {
			l := report.Line{Ratio: measure.Of([]float64{c.median}), Bound: c.bound, AtMost: c.atMost}
			require.Equal(t, c.want, l.Mark())
		})
	}
	require.Equal(t, "–", report.Line{Bound: 1}.Mark(), "nothing measured is no success")
}

func TestTheTableShowsGoalMedianAndSpread(t *testing.T) {
	got := report.Table([]report.Line{
		{Title: "W1", Against: "limit", Ratio: measure.Of([]float64{0.5, 0.625, 0.75}), Bound: 0.6},
		{Title: "parked", Against: "a 1 KB state", Ratio: measure.Of([]float64{3500}), Bound: 3000, AtMost: true, Unit: "bytes"},
		{Title: "W3", Against: "LangGraph", Bound: 30, Absent: "npm is not installed"},
	})
	require.Equal(t, ""+
		"|   | what   | against      | goal         | reached    | lowest – highest     |\n"+
		"|---|--------|--------------|--------------|------------|----------------------|\n"+
		"| ✓ | W1     | limit        | ≥ 0.60       | 0.62       | 0.50 – 0.75          |\n"+
		"| ✗ | parked | a 1 KB state | ≤ 3000 bytes | 3500 bytes | 3500 – 3500          |\n"+
		"| – | W3     | LangGraph    | ≥ 30         | –          | npm is not installed |\n", got)
}

func TestFiguresAreInOrderAndComparedWithTheirLimit(t *testing.T) {
	key := measure.Key{Workload: "W1", Store: "memory", Clients: 1, Who: "graphd"}
	series := measure.Series{
		key:             {{Rate: 50, P50: 0.002}, {Rate: 60, P50: 0.004}, {Rate: 10, P50: 0.003}},
		key.As("limit"): {{Rate: 100}, {Rate: 100}, {Rate: 100}},
	}
	figures := report.Figures(series, "limit")
	require.Len(t, figures, 2)
	require.Equal(t, "graphd", figures[0].Who)
	require.InDelta(t, 0.5, figures[0].ToLimit.Median, 1e-9)
	require.InDelta(t, 3, figures[0].P50.Median, 1e-9)
	require.Zero(t, figures[1].ToLimit.Rounds, "the limit is not compared with itself")
	text := report.Result{Figures: figures, Notes: []string{"eino is absent"}}.Text()
	require.Contains(t, text, "| W1       | memory | 1       | graphd | 50         | 10 – 60 ")
	require.Contains(t, text, "- eino is absent")
}
