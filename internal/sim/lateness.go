package sim

import "math"

// lateness counts how late threads went on, in steps of 5 %.
type lateness struct {
	counts [600]int64
	total  int64
}

const latenessBase = 1.05

// addSample counts a thread that was so many milliseconds late.
func (l *lateness) addSample(ms float64) {
	i := 0
	if ms > 1 {
		i = min(len(l.counts)-1, int(math.Log(ms)/math.Log(latenessBase)))
	}
	l.counts[i]++
	l.total++
}

// findQuantile returns the lateness in seconds that a share of the threads did not exceed.
func (l *lateness) findQuantile(share float64) float64 {
	rest := int64(math.Ceil(float64(l.total) * share))
	for i, n := range &l.counts {
		if rest -= n; rest <= 0 && l.total > 0 {
			return math.Pow(latenessBase, float64(i+1)) / 1000
		}
	}
	return 0
}
