package workload

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"

	"github.com/graphd-dev/graphd/bench/wire"
)

// Names makes ids of threads that no other thread of a store has.
type Names struct {
	Prefix string
	next   atomic.Int64
}

// Next is a new id.
func (n *Names) Next() string { return n.Prefix + strconv.FormatInt(n.next.Add(1), 36) }

var errNoQuestion = errors.New("no question came")

// W2 runs a thread to its question and answers it. It times from the answer to
// the first event after it.
func W2(t Target, names *Names) One {
	return func(ctx context.Context, lane int, times *Times) error {
		thread := names.Next()
		if err := Ask(ctx, t, lane, thread, `{"x":0}`); err != nil {
			return err
		}
		return reply(ctx, t, lane, thread, times)
	}
}

// Ask runs a thread to its question and leaves it there.
func Ask(ctx context.Context, t Target, lane int, thread, input string) error {
	asked := false
	request := encode(&graphdv1.StreamRequest{Run: run("question", thread, input)})
	e, err := t.follow(ctx, lane, Question, request, func(e wire.Event) { asked = asked || e.Kind == wire.Interrupt })
	if err == nil && !asked {
		err = errNoQuestion
	}
	return e.check(err, "W2 to its question", interrupted, "")
}

func reply(ctx context.Context, t Target, lane int, thread string, times *Times) error {
	request := encode(&graphdv1.ResumeRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: thread,
		Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: text(`"yes"`)}},
	}})
	began, updates := time.Now(), 0
	e, err := t.follow(ctx, lane, Answer, request, func(e wire.Event) {
		if e.Kind != wire.Update {
			return
		}
		if updates == 0 {
			times.Note(time.Since(began))
		}
		updates++
	})
	if err == nil && updates != 2 {
		err = errors.New("not both updates came after the answer: " + strconv.Itoa(updates))
	}
	return e.check(err, "W2 after its answer", succeeded, `{"x":2,"answer":"yes"}`)
}
