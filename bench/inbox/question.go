package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Whose questions there are, and of which graphs.
const (
	ana, ben = "ana", "ben"
	leads    = "leads" // the group of ana
	night    = "night" // has no question of the graph refund
	teams    = 20      // the groups of all other questions

	review   = "review"
	refund   = "refund"
	incident = "incident" // its questions are urgent
	approve  = "approve"  // asks in the page, and has no question in the store
)

// One question of so many is of a kind.
const (
	ofLeads  = 50
	ofNight  = 100
	ofRefund = 7
	withDue  = 10
)

// few is how many questions ana has alone, and how many are urgent.
const few = 50

// question is one of the questions that are open while the inbox is measured. They
// are spread evenly over the time in which they are asked.
type question struct {
	graph  string
	users  []string // who may answer, or
	groups []string
	due    int // in so many seconds, 0 = never
}

// questionAt is a question of so many, by its number from 0 on.
func questionAt(number, count int) question {
	q := question{graph: review, users: []string{}, groups: []string{}}
	if number%withDue == 4 {
		q.due = 24*60*60 + number*37%(24*60*60) // their order is not that in which they are asked
	}
	spacing := count / min(few, count/8)
	switch {
	case number%spacing == 0 && number/spacing < few:
		q.users = []string{ana, ben}
		return q
	case number%spacing == 2 && number/spacing < few:
		q.graph = incident
	case number%ofRefund == 3:
		q.graph = refund
	}
	switch {
	case number%ofLeads == 1:
		q.groups = []string{leads}
	case number%ofNight == 5 && q.graph != refund:
		q.groups = []string{night}
	default:
		q.groups = []string{"team-" + strconv.Itoa(number%teams)}
	}
	return q
}

// state is the input of the graph that asks.
func (q question) state() string {
	due := "null"
	if q.due > 0 {
		due = strconv.Itoa(q.due)
	}
	return fmt.Sprintf(`{"users":%s,"groups":%s,"due":%s}`, list(q.users), list(q.groups), due)
}

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

// tags is how many conditions the question is found by, as the index counts them.
func (q question) tags() int {
	n := 1 + len(q.users) + len(q.groups)
	if q.graph == incident {
		n++ // its priority
	}
	return n
}

// population is how many questions of each kind there are.
type population struct {
	all, ana, leads, night, refund, incident, due int
	mineRefund                                    int // mine, and of the graph refund
	tags                                          int // that they are found by
}

func populate(count int) population {
	p := population{all: count}
	for n := range count {
		p.add(questionAt(n, count))
	}
	return p
}

func (p *population) add(q question) {
	p.tags += q.tags()
	isLeads, isAnas := slices.Contains(q.groups, leads), slices.Contains(q.users, ana)
	for _, kind := range []struct {
		count *int
		isOne bool
	}{
		{&p.ana, isAnas},
		{&p.leads, isLeads},
		{&p.night, slices.Contains(q.groups, night)},
		{&p.refund, q.graph == refund},
		{&p.incident, q.graph == incident},
		{&p.mineRefund, q.graph == refund && (isAnas || isLeads)},
		{&p.due, q.due > 0},
	} {
		if kind.isOne {
			*kind.count++
		}
	}
}
