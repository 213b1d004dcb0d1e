package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/workload"
)

// Result has all figures of one run of the benchmark.
type Result struct {
	About   About    `json:"about"`
	Lines   []Line   `json:"lines"`
	Figures []Figure `json:"figures"`
	// Notes name absent parts, with the reason.
	Notes []string `json:"notes,omitempty"`
}

// Figure is the result of one contestant.
type Figure struct {
	measure.Key
	Rate measure.Spread `json:"rate"`
	// P50 and P99 in milliseconds.
	P50 measure.Spread `json:"p50"`
	P99 measure.Spread `json:"p99"`
	// ToLimit is the ratio to the limit of the same round.
	ToLimit measure.Spread    `json:"to_limit"`
	Samples []workload.Sample `json:"samples"`
}

// Figures lists the figures of a series, in a fixed order.
func Figures(s measure.Series, limit string) []Figure {
	var all []Figure
	for k, samples := range s {
		f := Figure{Key: k, Rate: s.Rate(k), Samples: samples}
		f.P50 = s.Each(k, func(w workload.Sample) float64 { return w.P50 * 1e3 })
		f.P99 = s.Each(k, func(w workload.Sample) float64 { return w.P99 * 1e3 })
		if k.Who != limit {
			f.ToLimit = s.Ratio(k, k.As(limit))
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Figure) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Store, b.Store),
			cmp.Compare(a.Clients, b.Clients), cmp.Compare(a.Who, b.Who))
	})
	return all
}

// Text is the result for people.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# graphd %s\n\n%s\n\n", r.About.Commit, r.About)
	b.WriteString("Ratios are medians of the ratios of single rounds, in which what is compared was measured one after the other.\n" +
		"Absolute figures mean nothing on another machine, or on this one at another time.\n\n")
	b.WriteString(Table(r.Lines))
	for _, note := range r.Notes {
		b.WriteString("\n- " + note)
	}
	b.WriteString("\n\n## All figures\n\n")
	rows := [][]string{{"workload", "store", "clients", "who", "per second", "lowest – highest", "to the limit", "p50 ms", "p99 ms"}}
	for _, f := range r.Figures {
		rows = append(rows, []string{
			f.Workload, f.Store, strconv.Itoa(f.Clients), f.Who, Digits(f.Rate.Median),
			Digits(f.Rate.Min) + " – " + Digits(f.Rate.Max), some(f.ToLimit), some(f.P50), some(f.P99),
		})
	}
	b.WriteString(Grid(rows))
	return b.String()
}

func some(s measure.Spread) string {
	if s.Rounds == 0 || s.Median == 0 {
		return ""
	}
	return Digits(s.Median)
}
