package graph

import (
	"context"
	"encoding/json"
	"fmt"
)

// Memo runs a side effect once: the first time it runs f and records what f
// returned, durably, before Memo returns; on every later attempt it returns
// the record. An error of f is not recorded. f runs again when the process
// dies between the effect and its record; Info.Task is an idempotency key for
// that.
//
// The n-th use of a key in a scope is always the same memo. T goes through
// JSON, on the first attempt too. After a question without an answer, Memo
// returns its *Interrupted and does not run f.
func Memo[T any](ctx context.Context, key string, f func(context.Context) (T, error)) (T, error) {
	var value T
	b, err := bound(ctx)
	if err != nil {
		return value, err
	}
	if key == "" {
		return value, Permanent(fmt.Errorf("a memo needs a key"))
	}
	text, err := b.task.Memo(ctx, scopeOf(ctx), key, func(ctx context.Context) (json.RawMessage, error) {
		fresh, err := f(ctx)
		if err != nil {
			return nil, err
		}
		text, err := encode(fresh)
		if err != nil {
			return nil, Permanent(fmt.Errorf("memo %q: %w", key, err))
		}
		return text, nil
	})
	if err != nil {
		return value, err
	}
	if err := decode(text, &value); err != nil {
		return value, Permanent(fmt.Errorf("memo %q holds %.120s: %w", key, text, err))
	}
	return value, nil
}
