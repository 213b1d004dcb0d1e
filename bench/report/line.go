// Package report says what was found: a table with a mark for every goal, all
// figures, and where they come from.
package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/graphd-dev/graphd/bench/measure"
)

// Line is one goal and how far it was reached.
type Line struct {
	// Title says what is compared, Against with what.
	Title   string `json:"title"`
	Against string `json:"against"`
	// Ratio is over the rounds. Bound is what it must be: at least, or with
	// AtMost at most.
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
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", sign, figure(l.Bound), l.Unit))
}

func (l Line) found() (median, spread string) {
	if l.Ratio.Rounds == 0 {
		return "–", l.Absent
	}
	return strings.TrimSpace(figure(l.Ratio.Median) + " " + l.Unit), figure(l.Ratio.Min) + " – " + figure(l.Ratio.Max)
}

// figure prints three digits that matter.
func figure(v float64) string {
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
