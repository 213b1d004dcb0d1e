package graph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// Memo runs a side effect once: the first time it runs f and records the result
// of f, durably, before Memo returns; on every later attempt it returns the
// record. An error of f is not recorded. f runs again when the process dies
// between the effect and its record; [MemoWithKey] is for effects that must not
// even then happen twice.
//
// The n-th use of a key in a scope is always the same memo. T goes through
// JSON, on the first attempt too. After a question without an answer, Memo
// returns its [*Interrupted] and does not run f.
func Memo[T any](ctx context.Context, key string, f func(context.Context) (T, error)) (T, error) {
	return MemoWithKey(ctx, key, func(ctx context.Context, _ string) (T, error) { return f(ctx) })
}

// MemoWithKey is [Memo] with an idempotency key for f, to be handed to the system
// that the effect is in: the same on every attempt and replay, and another key for
// every other memo. See [IdempotencyKey].
func MemoWithKey[T any](
	ctx context.Context, key string, f func(ctx context.Context, idempotencyKey string) (T, error),
) (T, error) {
	var value T
	b, err := boundTask(ctx)
	if err != nil {
		return value, err
	}
	if key == "" {
		return value, Permanent(fmt.Errorf("a memo needs a key"))
	}
	text, err := b.task.Memo(ctx, scopeOf(ctx), key, func(ctx context.Context, idempotencyKey string) (json.RawMessage, error) {
		fresh, err := f(ctx, idempotencyKey)
		if err != nil {
			return nil, err
		}
		text, err := encodeJSON(fresh)
		if err != nil {
			return nil, Permanent(fmt.Errorf("memo %q: %w", key, err))
		}
		return text, nil
	})
	if err != nil {
		return value, err
	}
	if err := decodeJSON(text, &value); err != nil {
		return value, Permanent(fmt.Errorf("memo %q holds %.120s: %w", key, text, err))
	}
	return value, nil
}

// IdempotencyKey names the effect of a memo towards other systems: the first 32
// hexadecimal digits of the SHA-256 of thread, task, scope, key and index, each as
// its length in bytes in decimal, a colon, the text and a comma. Every language
// makes the same. index counts the uses of the key in the scope before.
func IdempotencyKey(thread, task, scope, key string, index int) string {
	sum := sha256.New()
	for _, part := range []string{thread, task, scope, key, strconv.Itoa(index)} {
		_, _ = fmt.Fprintf(sum, "%d:%s,", len(part), part) // never fails
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
