package main

import (
	"context"
	"fmt"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// pageSize is that of the pages that are timed, walkSize that of those on the way to the middle.
const (
	pageSize = 50
	walkSize = 500
)

// page is a list that is read again and again.
type page struct {
	inbox   *inbox
	request *graphdv1.ListInterruptsRequest
	want    int // questions
	// middle is where to begin again after the last page; "" = it is always the first page.
	middle string
}

func (p *page) read(ctx context.Context, _ int, times *workload.Times) error {
	got, err := p.inbox.listPage(ctx, p.request, times)
	if err != nil {
		return err
	}
	if p.middle != "" {
		if p.request.PageToken = got.GetNextPageToken(); p.request.GetPageToken() == "" {
			p.request.PageToken = p.middle
			return nil // the last page may be a short one
		}
	}
	if n := len(got.GetInterrupts()); n != min(p.want, pageSize) {
		return fmt.Errorf("a page by %q has %d questions instead of %d", p.request.GetFilter(), n, min(p.want, pageSize))
	}
	return nil
}

// first is the first page of a filter.
func (b *inbox) first(filter, order string, want int) workload.One {
	p := &page{inbox: b, want: want, request: &graphdv1.ListInterruptsRequest{Filter: filter, OrderBy: order, PageSize: pageSize}}
	return p.read
}

// next is the next page, again and again, from the middle of a list on.
func (b *inbox) next(ctx context.Context, filter string, want int) (workload.One, error) {
	r := &graphdv1.ListInterruptsRequest{Filter: filter, PageSize: min(walkSize, int32(want/4))}
	for read := 0; read < want/2; read += int(r.GetPageSize()) {
		got, err := b.listPage(ctx, r, nil)
		if err != nil {
			return nil, err
		}
		r.PageToken = got.GetNextPageToken()
	}
	if r.GetPageToken() == "" {
		return nil, fmt.Errorf("the list by %q ends before its middle", filter)
	}
	r.PageSize = pageSize
	p := &page{inbox: b, want: want, request: r, middle: r.GetPageToken()}
	return p.read, nil
}

// Goals in milliseconds of pages and counts.
const (
	page50, page99   = 5, 15
	count50, count99 = 2, 8
)

// reads are the operations that change nothing. middle is where the pages of the graph with
// many questions go on, some are questions to look at.
func (b *inbox) reads(p population, l limits, middle workload.One, some []target) []operation {
	all := []operation{
		{name: "first page of mine", call: b.first(mine, "", p.ana+p.leads)},
		{name: "first page of a group with 2 %", call: b.first(filter("group", leads), "", p.leads)},
		{name: "next page in the middle of a graph with 1/7", call: middle},
		{name: "first page without a filter", call: b.first("", "", p.all), before: b.known("22 ms (50,000 open)", "")},
		{name: "first page by due time", call: b.first("", "due_time", p.due)},
		{name: "first page of mine and a graph", call: b.first(mine+" AND "+filter("graph", refund), "", p.mineRefund)},
		{
			name: "page of an assignee with 50", call: b.first(filter("assignee", ana), "", p.ana),
			before: b.known("1,630 ms (50,000 open)", "892 ms (30,000 open)"),
		},
		{
			name: "page of a graph with 50", call: b.first(filter("graph", incident), "", p.incident),
			before: b.known("1,350 ms (50,000 open)", "205 ms (30,000 open)"),
		},
	}
	for i := range all {
		all[i].limit, all[i].goal50, all[i].goal99 = l.page, page50, page99
	}
	return append(all,
		operation{
			name: "page of an assignee with none", call: b.first(filter("assignee", "nobody"), "", 0), limit: l.nothing,
			goal50: page50, goal99: page99, before: b.known("1,298 ms (50,000 open)", "1,229 ms (30,000 open)"),
		},
		operation{
			name: "page of a graph with 1/7 and a group with 1 %, of none",
			call: b.first(filter("graph", refund)+" AND "+filter("group", night), "", 0), limit: l.nothing, goal50: page50, goal99: page99,
		},
		operation{name: "count of 8 views", call: b.counts(p), limit: l.count, goal50: count50, goal99: count99},
		operation{name: "a question", call: each(some, b.get), limit: l.record},
		operation{name: "the trail of a question", call: each(some, b.trail), limit: l.record},
	)
}

// known is the figure of an earlier build on the kind of store that this is.
func (b *inbox) known(redis, sqlite string) string {
	if b.setting == stand.SQLite {
		return sqlite
	}
	return redis
}

// counts counts the views of an inbox.
func (b *inbox) counts(p population) workload.One {
	views := p.views()
	all := filters(views)
	return func(ctx context.Context, _ int, times *workload.Times) error {
		counts, err := b.count(ctx, all, times)
		if err == nil && counts[1] != p.all {
			err = fmt.Errorf("%d questions are counted instead of %d", counts[1], p.all)
		}
		return err
	}
}

// target is the name of a question.
type target struct{ thread, id string }

// questionsOf lists the questions of a filter.
func (b *inbox) questionsOf(ctx context.Context, filter string) ([]target, error) {
	var all []target
	for r := (&graphdv1.ListInterruptsRequest{Filter: filter, PageSize: walkSize}); ; {
		got, err := b.listPage(ctx, r, nil)
		if err != nil {
			return nil, err
		}
		for _, q := range got.GetInterrupts() {
			all = append(all, target{q.GetThreadId(), q.GetInterruptId()})
		}
		if r.PageToken = got.GetNextPageToken(); r.GetPageToken() == "" {
			return all, nil
		}
	}
}

// each does something with one question after the other.
func each(some []target, do func(context.Context, target, *workload.Times) error) workload.One {
	next := 0
	return func(ctx context.Context, _ int, times *workload.Times) error {
		t := some[next%len(some)]
		next++
		return do(ctx, t, times)
	}
}

func (b *inbox) get(ctx context.Context, t target, times *workload.Times) error {
	var got graphdv1.Interrupt
	return b.inquire(ctx, "GetInterrupt", &graphdv1.GetInterruptRequest{ThreadId: t.thread, InterruptId: t.id}, &got, times)
}

func (b *inbox) trail(ctx context.Context, t target, times *workload.Times) error {
	var got graphdv1.ListTrailResponse
	err := b.inquire(ctx, "ListTrail", &graphdv1.ListTrailRequest{ThreadId: t.thread, InterruptId: t.id}, &got, times)
	if err == nil && len(got.GetEntries()) == 0 {
		err = fmt.Errorf("the trail of %s is empty", t.thread)
	}
	return err
}

// inquire calls the service of questions.
func (b *inbox) inquire(ctx context.Context, method string, request, answer proto.Message, times *workload.Times) error {
	return call(ctx, b.one, 0, interrupts+method, request, answer, times)
}
