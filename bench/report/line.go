// Package report shows results: a table with a mark for every goal, all figures,
// and their origin.
package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/graphd-dev/graphd/bench/measure"
)

// Line is one goal and its result.
type Line struct {
	// Title names the figure, Against the figure to compare with.
	Title   string `json:"title"`
	Against string `json:"against"`
	// Ratio is over the rounds. Bound is the least value that
	// reaches the goal, or with AtMost the greatest.
	Ratio  measure.Spread `json:"ratio"`
	Bound  float64        `json:"bound"`
	AtMost bool           `json:"at_most,omitempty"`
	// Absent says why there is no ratio.
	Absent string `json:"absent,omitempty"`
	// Unit is set when Ratio is no ratio but an amount.
	Unit string `json:"unit,omitempty"`
}

// Mark tells whether the goal was reached by the median.
func (l Line) Mark() string {
	switch {
	case l.Ratio.Rounds == 0:
		return "–"
	case l.AtMost == (l.Ratio.Median <= l.Bound) || l.Ratio.Median == l.Bound:
		return "✓"
	default:
		return "✗"
	}
}

func (l Line) goal() string {
	sign := "≥"
	if l.AtMost {
		sign = "≤"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", sign, Digits(l.Bound), l.Unit))
}

func (l Line) found() (median, spread string) {
	if l.Ratio.Rounds == 0 {
		return "–", l.Absent
	}
	return strings.TrimSpace(Digits(l.Ratio.Median) + " " + l.Unit), Digits(l.Ratio.Min) + " – " + Digits(l.Ratio.Max)
}

// Digits prints three digits that matter.
func Digits(v float64) string {
	switch size := math.Abs(v); {
	case v == math.Trunc(v) && size < 1e6:
		return fmt.Sprintf("%.0f", v)
	case size >= 100:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	case size >= 0.01:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}
