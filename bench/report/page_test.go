package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/report"
)

func TestATableTakesThePlaceOfTheOneBefore(t *testing.T) {
	r := report.Result{
		About: report.About{Date: "2026-11-21", Cores: 2, Machine: "Toaster", Commit: "abc", Versions: map[string]string{"redis": "7"}},
		Lines: []report.Line{{Title: "W1", Against: "limit", Ratio: measure.Of([]float64{2}), Bound: 1}},
		Figures: []report.Figure{{
			Key:  measure.Key{Workload: "W1", Store: "memory", Clients: 64, Who: "graphd"},
			Rate: measure.Of([]float64{5000}), ToLimit: measure.Of([]float64{0.25}),
		}},
	}
	once, err := report.Insert("before\n<!-- begin: bench -->\n<!-- end: bench -->\nafter\n", r)
	require.NoError(t, err)
	require.Contains(t, once, "before\n<!-- begin: bench -->\n\n2026-11-21, 2 × Toaster, graphd abc, redis 7; ")
	require.Contains(t, once, "| ✓ | W1 ")
	require.Contains(t, once, "| memory | –                      | 5000 (0.25 of the limit) | –  ")
	require.Contains(t, once, "|\n\n<!-- end: bench -->\nafter\n")
	twice, err := report.Insert(once, r)
	require.NoError(t, err)
	require.Equal(t, once, twice)
	for _, page := range []string{"", "<!-- begin: bench -->\n", "<!-- end: bench -->\n<!-- begin: bench -->\n"} {
		_, err := report.Insert(page, r)
		require.ErrorIs(t, err, report.ErrNoMarks)
	}
}
