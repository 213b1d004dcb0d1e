package sim

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// WriteDramas writes a table of the outcomes of the dramas.
func WriteDramas(out io.Writer, outcomes []Outcome) {
	fmt.Fprintln(out, "| drama | servers | looks | until all went on | p99 lateness | … apart | reads in vain | … changes | busiest master | all masters |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|")
	for _, o := range outcomes {
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s | %s | %s | %.0f %% | %.0f %% |\n", o.Drama, o.Size.Servers, o.Policy, formatDrained(o),
			formatLateness(o), formatSeconds(o.ApartP99), formatCount(o.Wasted), formatCount(o.Conflicts), 100*o.BusiestMaster, 100*o.MeanMaster)
	}
}

// WriteSizes writes a table of what sizes need, from their steady state.
func WriteSizes(out io.Writer, outcomes []Outcome) {
	fmt.Fprintln(out, "| parked threads | live runs | servers | looks | partitions | masters of 64 GiB | memory of each | busiest master | of that: "+
		"threads, threads that another server took, looks, roster, leases |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	for _, o := range outcomes {
		var shares []string
		for _, share := range o.BusiestUses {
			shares = append(shares, fmt.Sprintf("%.1f %%", 100*share))
		}
		fmt.Fprintf(out, "| %s | %s | %d | %s | %d | %d | %.0f GB | %.0f %% | %s |\n", formatCount(o.Size.Threads), formatCount(int64(o.Size.LiveRuns)),
			o.Size.Servers, o.Policy, o.Size.Partitions, o.Size.Masters, float64(o.Size.Threads*MeasuredCosts().ThreadBytes)/float64(o.Size.Masters)/1e9,
			100*o.BusiestMaster, strings.Join(shares, ", "))
	}
}

// String names a policy.
func (p Policy) String() string {
	if p == All {
		return "of all at all"
	}
	return "shared"
}

func formatDrained(o Outcome) string {
	switch {
	case o.Drama == "rolling-restart" || o.Drama == "lost-shard":
		return "–"
	case o.Drained > 0:
		return o.Drained.Round(100 * time.Millisecond).String()
	case o.Done >= o.Threads-o.Threads/1000:
		return "all but the last"
	case o.Extrapolated > 24*time.Hour || o.Done == 0:
		return "more than a day"
	}
	return fmt.Sprintf("%s (extrapolated)", o.Extrapolated.Round(time.Second))
}

// formatLateness says how late threads were. Those that did not go on count, too.
func formatLateness(o Outcome) string {
	if math.IsInf(lateP99(o), 1) {
		return fmt.Sprintf("more than %s", formatSeconds(o.P99))
	}
	return formatSeconds(o.P99)
}

func formatSeconds(s float64) string {
	switch {
	case s == 0:
		return "–"
	case s < 1:
		return fmt.Sprintf("%.0f ms", 1000*s)
	}
	return fmt.Sprintf("%.1f s", s)
}

func formatCount(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
