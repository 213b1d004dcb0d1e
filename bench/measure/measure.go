// Package measure repeats measurements in turn, so that other work of
// the machine hits all contestants alike, and compares them round by round.
package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/bench/workload"
)

// Key identifies a measurement.
type Key struct {
	Workload string `json:"workload"`
	Store    string `json:"store"`
	Clients  int    `json:"clients"`
	// Who is graphd, limit, the name of a peer, or which of several builds.
	Who string `json:"who"`
}

// As is the same for another contestant.
func (k Key) As(who string) Key {
	k.Who = who
	return k
}

// String names it for people.
func (k Key) String() string {
	return fmt.Sprintf("%s, %s, %d clients, %s", k.Workload, k.Store, k.Clients, k.Who)
}

// Cell is one measurement to take.
type Cell struct {
	Key  Key
	Take func(context.Context) (workload.Sample, error)
}

// Series has the samples of all rounds.
type Series map[Key][]workload.Sample

// Add adds a further sample that a cell has measured.
func (s Series) Add(k Key, sample workload.Sample) { s[k] = append(s[k], sample) }

// Round takes every cell of the groups once. Within a group the order turns
// from round to round. It takes all, also when some are broken.
func (s Series) Round(ctx context.Context, number int, groups [][]Cell) error {
	var broken []error
	for _, group := range groups {
		for i := range group {
			c := group[(i+number)%len(group)]
			sample, err := take(ctx, c)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				broken = append(broken, fmt.Errorf("%s: %w", c.Key, err))
				sample = workload.Sample{}
			}
			s.Add(c.Key, sample)
		}
	}
	return errors.Join(broken...)
}

// patience is after how long a cell counts as broken.
const patience = 2 * time.Minute

func take(ctx context.Context, c Cell) (workload.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.Take(ctx)
}

// Spread is a median and the extremes around it.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`
}

// Of spreads values; without any it has no rounds.
func Of(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		middle = (middle + sorted[len(sorted)/2-1]) / 2
	}
	return Spread{Median: middle, Min: sorted[0], Max: sorted[len(sorted)-1], Rounds: len(sorted)}
}

// Each is the spread of a number over the rounds of a key that were not broken.
func (s Series) Each(k Key, number func(workload.Sample) float64) Spread {
	var all []float64
	for _, sample := range s[k] {
		if sample != (workload.Sample{}) {
			all = append(all, number(sample))
		}
	}
	return Of(all)
}

// Rate is the spread of the rates of a key.
func (s Series) Rate(k Key) Spread {
	return s.Each(k, func(w workload.Sample) float64 { return w.Rate })
}

// Ratio compares the rates of two keys round by round. A round counts only
// when both were measured and neither is broken.
func (s Series) Ratio(of, to Key) Spread {
	return s.Compare(of, to, func(w workload.Sample) float64 { return w.Rate })
}

// Compare is Ratio for another number of the samples.
func (s Series) Compare(of, to Key, number func(workload.Sample) float64) Spread {
	var all []float64
	for i := range min(len(s[of]), len(s[to])) {
		if one, other := number(s[of][i]), number(s[to][i]); one > 0 && other > 0 {
			all = append(all, one/other)
		}
	}
	return Of(all)
}
