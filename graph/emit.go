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

// Emit sends an event of your own to the current followers of the run. While a
// replay repeats earlier work, events are dropped: they were seen then.
func Emit(ctx context.Context, name string, value any, options ...EmitOption) error {
	if name == "" {
		return Permanent(errors.New("an event needs a name"))
	}
	return emitEvent(ctx, Event{Name: name}, value, options)
}

// EmitMessage sends a chat message or a part of a message, like Emit.
func EmitMessage(ctx context.Context, message any, options ...EmitOption) error {
	return emitEvent(ctx, Event{Message: true}, message, options)
}

func emitEvent(ctx context.Context, e Event, value any, options []EmitOption) error {
	b, err := boundTask(ctx)
	if err != nil {
		return err
	}
	if e.Value, err = encodeJSON(value); err != nil {
		return Permanent(fmt.Errorf("the value of an event: %w", err))
	}
	for _, option := range options {
		option(&e)
	}
	return b.task.Emit(e)
}
