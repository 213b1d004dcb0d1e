package main

import (
	"context"
	"fmt"
)

// mine selects the questions of the caller.
const mine = `mine = "true"`

// view is a filter with the number of questions that it selects.
type view struct {
	filter string
	want   int
}

// views are the eight that an inbox counts.
func (p *population) views() []view {
	return []view{
		{mine, p.ana + p.leads},
		{"", p.all},
		{filter("graph", refund), p.refund},
		{filter("graph", incident), p.incident},
		{filter("group", leads), p.leads},
		{filter("assignee", ana), p.ana},
		{filter("priority", "URGENT"), p.incident},
		{filter("claimed_by", ana), 0},
	}
}

func filters(views []view) []string {
	var all []string
	for _, v := range views {
		all = append(all, v.filter)
	}
	return all
}

// check fails unless the store has exactly the questions of a population.
func (b *inbox) check(ctx context.Context, p population) error {
	views := p.views()
	counts, err := b.count(ctx, filters(views), nil)
	if err != nil {
		return err
	}
	for i, v := range views {
		if counts[i] != v.want {
			return fmt.Errorf("%d questions are counted by %q instead of %d", counts[i], v.filter, v.want)
		}
	}
	return nil
}
