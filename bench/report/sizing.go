package report

import (
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/bench/measure"
)

// Sizing returns the table by which operators size a deployment: the rates on each
// store, and their parts of the limit.
func Sizing(figures []Figure, who string) string {
	columns := []measure.Key{
		{Workload: "W1", Clients: 1, Who: who},
		{Workload: "W1", Clients: 64, Who: who},
		{Workload: "W2", Clients: 1, Who: who},
		{Workload: "W2", Clients: 64, Who: who},
	}
	rows := [][]string{{"store", "supersteps/s, 1 client", "64 clients", "question and answer/s, 1 client", "64 clients"}}
	for _, store := range stores(figures) {
		row := []string{store}
		for _, c := range columns {
			c.Store = store
			row = append(row, rateOf(figures, c))
		}
		rows = append(rows, row)
	}
	return Grid(rows)
}

// stores lists those on which W1 was measured, in order.
func stores(figures []Figure) []string {
	var all []string
	for _, f := range figures {
		if f.Workload == "W1" && !slices.Contains(all, f.Store) {
			all = append(all, f.Store)
		}
	}
	return all
}

func rateOf(figures []Figure, k measure.Key) string {
	for _, f := range figures {
		if f.Key == k && f.ToLimit.Rounds > 0 {
			return fmt.Sprintf("%s (%s of the limit)", Digits(f.Rate.Median), Digits(f.ToLimit.Median))
		}
	}
	return "–"
}
