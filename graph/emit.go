package graph

import (
	"context"
	"errors"
	"fmt"
)

// EmitOption changes how an event is sent.
type EmitOption func(*Event)

// Durable keeps the event in the thread's log. It then costs a commit.
func Durable() EmitOption { return func(e *Event) { e.Durable = true } }

// Emit sends an event of your own to those who watch the run now. While a
// replay has not come past what it did before, events are dropped: they were
// seen then.
func Emit(ctx context.Context, name string, value any, options ...EmitOption) error {
	if name == "" {
		return Permanent(errors.New("an event needs a name"))
	}
	return emit(ctx, Event{Name: name}, value, options)
}

// EmitMessage sends a chat message or a part of one, like Emit.
func EmitMessage(ctx context.Context, message any, options ...EmitOption) error {
	return emit(ctx, Event{Message: true}, message, options)
}

func emit(ctx context.Context, e Event, value any, options []EmitOption) error {
	b, err := bound(ctx)
	if err != nil {
		return err
	}
	if e.Value, err = encode(value); err != nil {
		return Permanent(fmt.Errorf("the value of an event: %w", err))
	}
	for _, option := range options {
		option(&e)
	}
	return b.task.Emit(e)
}
